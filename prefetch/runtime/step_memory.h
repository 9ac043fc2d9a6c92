#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "prefetch/liveness.h"
#include "prefetch/plan.h"
#include "prefetch/simulate/timeline.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"
#include "um/hints.h"
#include "um/stream.h"

namespace spillway::prefetch {

/// Fixed addresses of everything that each run and each move of a step touches. Such a step can be
/// submitted ahead, as a StepProgram.
///
/// Thread safety: none.
class FixedPlaces {
 public:
  /// The source and target of a move; null and empty when no bytes need to move.
  struct Copy {
    std::span<const std::byte> from;
    std::byte* to = nullptr;
  };

  virtual ~FixedPlaces() = default;

  /// Returns the address of an operand of the run at `position`.
  [[nodiscard]] virtual std::byte* address(Position position, DataId id) const = 0;
  /// Returns the workspace of that run; null when its algorithm needs none.
  [[nodiscard]] virtual std::byte* workspace(Position position) const = 0;
  [[nodiscard]] virtual Copy offload(std::uint32_t index) const = 0;
  [[nodiscard]] virtual Copy prefetch(std::uint32_t index) const = 0;

  /// Prepares the places for a step. Blocks until state is at its initial places. Throws:
  /// um::OutOfMemory; what moves throw.
  virtual void begin_step() = 0;
  /// Ends the use of the places by the step.
  virtual void end_step() noexcept = 0;
};

/// The memory of a running step: executes a plan's moves in one of the memory modes (resident,
/// managed, copy).
///
/// The executor calls on one thread: begin_step(), then for each run in order begin_run(),
/// address(), the kernel's launch and after_launch(), and finally end_step(). It calls end_run() in
/// order when a run has ended, after its after_launch(), on any thread but one at a time. Runs may
/// be launched ahead of the one in flight; they execute in order. A run that has ended when its
/// launch returns does not need after_launch(). After an exception only destruction is allowed.
class StepMemory {
 public:
  virtual ~StepMemory() = default;

  /// Returns the step as fixed places, which replace all calls below; null if it has none.
  [[nodiscard]] virtual FixedPlaces* fixed_places() { return nullptr; }
  /// Returns whether end_run() must be called as soon as each run has ended. Otherwise the call may
  /// be delayed, at most until the end of a run that a move waits for.
  [[nodiscard]] virtual bool needs_each_end() const { return false; }

  // Movable state outlives the step, and memories in one space may share it. One memory owns it at
  // a time, between its enter() and its leave(); only that memory's steps run meanwhile. The next
  // three functions are called between steps, block until they are done, and throw as begin_run()
  // does.

  /// Takes over the movable state, and moves it where the plan has it between steps. Before the
  /// call all of it is far; in resident and managed mode anywhere in its place in the slab.
  virtual void enter() {}
  /// Returns the state to where other memories' enter() expects it.
  virtual void leave() {}
  /// Receives the addresses of blocks of state.
  using StateUse = std::function<void(std::span<std::byte* const>)>;
  /// Calls `use` with the addresses of movable blocks of state, all near meanwhile; `access` says
  /// what `use` does. Other state may be offloaded for that, and is back when the next step begins.
  /// Requires: this memory owns the state, and no step of any memory that shares it is in flight;
  /// near memory holds the blocks.
  virtual void with_state(std::span<const DataId> ids, um::Access /*access*/, const StateUse& use) {
    std::vector<std::byte*> addresses;  // all state is near all the time
    for (const DataId id : ids) addresses.push_back(address(id));
    use(addresses);
  }

  // For plans with far updates.

  /// Blocks until the step in flight has reached `after`. Throws: um::Error when a move failed; the
  /// error given to fail(). Thread safety: any thread.
  virtual void wait_for(const Progress& /*after*/) {}
  /// Returns far memory as its processor reaches it; null if no processor does.
  [[nodiscard]] virtual um::FarSide* far_side() { return nullptr; }
  /// Returns the offset of a block of movable state in far memory.
  [[nodiscard]] virtual um::Bytes far_offset(DataId /*id*/) const { return {}; }

  virtual void begin_step() = 0;

  /// Waits until work submitted after the earlier runs may touch the operands of run `position`.
  /// Throws: um::Error when a move failed.
  virtual void begin_run(Position position) = 0;
  /// Returns the address of an operand of the current run; valid until its end_run().
  [[nodiscard]] virtual std::byte* address(DataId id) const = 0;
  /// Returns the workspace of the current run; null when its algorithm needs none.
  [[nodiscard]] virtual std::byte* workspace() const = 0;
  /// Notes that the run is enqueued: later runs may overwrite what only it and earlier runs need.
  virtual void after_launch(Position position) = 0;
  /// Notes that the run has ended: dead blocks are discarded, and moves that waited for it may
  /// start.
  virtual void end_run(Position position) = 0;
  /// Replaces end_run() on error: begin_run() and end_step() throw `error` from now on. Thread
  /// safety: any thread.
  virtual void fail(std::exception_ptr error) = 0;

  /// Waits until every run and every move has ended.
  virtual void end_step() = 0;

  /// Returns when the moves of the last step began and ended, from its beginning; `runs` is empty.
  [[nodiscard]] virtual Timeline moves() const = 0;
};

/// A group of moves to wait for together.
///
/// Thread safety: one thread at a time; the moves may end on any thread.
class AwaitedMoves {
 public:
  /// Adds a move to the group. Returns its completion.
  [[nodiscard]] um::Completion one_more() {
    const std::lock_guard lock{ends_->mutex};
    ++ends_->under_way;
    return [ends = ends_](std::exception_ptr failure) {
      const std::lock_guard guard{ends->mutex};
      if (ends->failure == nullptr) ends->failure = std::move(failure);
      --ends->under_way;
      ends->changed.notify_all();
    };
  }

  /// Blocks until all have ended. Throws: the first error of a move.
  void wait() {
    std::unique_lock lock{ends_->mutex};
    ends_->changed.wait(lock, [this] { return ends_->under_way == 0; });
    if (ends_->failure != nullptr) std::rethrow_exception(ends_->failure);
  }

 private:
  struct Ends {
    std::mutex mutex;
    std::condition_variable changed;
    std::size_t under_way = 0;
    std::exception_ptr failure;
  };
  // Shared with the moves: if one cannot be submitted, the others stay in flight.
  std::shared_ptr<Ends> ends_ = std::make_shared<Ends>();
};

}  // namespace spillway::prefetch
