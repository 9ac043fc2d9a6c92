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
#include "prefetch/runtime/copy_arena.h"
#include "prefetch/simulate/timeline.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"
#include "um/hints.h"
#include "um/stream.h"

namespace spillway::um {

class FarSide;

}  // namespace spillway::um

namespace spillway::prefetch {

/// Where the blocks of a step are while it runs: one of the memory modes (resident, managed, copy),
/// executing a plan.
///
/// The executor calls, on one thread: begin_step(), then for each run of the plan in order
/// begin_run(), reads addresses, enqueues the kernel, after_launch(), then end_step(). When a run
/// has ended, and not before its after_launch(), it calls end_run(), in order, on any thread but on
/// one at a time: several runs may be launched ahead of the one that is under way, and all of them
/// execute in order. A run that has ended when its launch returns needs no after_launch(). After an
/// exception only destruction is allowed.
class StepMemory {
 public:
  virtual ~StepMemory() = default;

  /// The same step as fixed places, instead of all the calls below; null where it has none.
  [[nodiscard]] virtual FixedPlaces* fixed_places() { return nullptr; }
  /// Whether end_run() must be called as soon as each run has ended. If not, it may come when a
  /// later run has, as long as it comes before the end of a run that a move waits for.
  [[nodiscard]] virtual bool needs_each_end() const { return false; }

  // Movable state outlives the step, and may be shared by the steps of several memories in one
  // space. One of these has it at a time, between its enter() and its leave(). Between the two, all
  // its steps run, and no other memory's. These three block until they are done, and are called
  // between steps; they throw as begin_run() does.

  /// Takes the movable state over, and brings it where the plan has it between steps. Before that
  /// all of it is far; in resident and managed mode anywhere in its place in the slab.
  virtual void enter() {}
  /// Gives the state back: where other memories' enter() expects it.
  virtual void leave() {}
  /// What is given the addresses of blocks of state.
  using StateUse = std::function<void(std::span<std::byte* const>)>;
  /// Calls `use` with the addresses of movable blocks of state, all near meanwhile; `access` says
  /// what `use` does. Other state may have to leave for that. All of it is where the plan has it
  /// when the next step begins.
  /// Requires: no step of any memory that shares the state is under way, and this one has it; near
  /// memory holds the blocks.
  virtual void with_state(std::span<const DataId> ids, um::Access /*access*/, const StateUse& use) {
    std::vector<std::byte*> addresses;  // where all of it is near all the time
    for (const DataId id : ids) addresses.push_back(address(id));
    use(addresses);
  }

  // Of plans that update on the far side.

  /// Waits until the step under way has come as far as `after`. Called by any thread. Throws:
  /// um::Error when a move failed; what fail() was told.
  virtual void wait_for(const Progress& /*after*/) {}
  /// Far memory as the processor beside it reaches it; null where none does.
  [[nodiscard]] virtual um::FarSide* far_side() { return nullptr; }
  /// Where a block of movable state lies there.
  [[nodiscard]] virtual um::Bytes far_offset(DataId /*id*/) const { return {}; }

  virtual void begin_step() = 0;

  /// Waits until everything run `position` touches may be touched by what is enqueued after the
  /// runs before it.
  /// Throws: um::Error when a move failed.
  virtual void begin_run(Position position) = 0;
  /// The address of an operand of the current run; valid until its end_run().
  [[nodiscard]] virtual std::byte* address(DataId id) const = 0;
  /// The workspace of the current run; null when its algorithm needs none.
  [[nodiscard]] virtual std::byte* workspace() const = 0;
  /// The run is enqueued: what only it and earlier runs need may be overwritten by later ones.
  virtual void after_launch(Position position) = 0;
  /// The run has ended: what nobody needs any more is dropped, and moves that waited for it may
  /// start.
  virtual void end_run(Position position) = 0;
  /// Instead of end_run(): begin_run() and end_step() throw `error` from now on. Any thread.
  virtual void fail(std::exception_ptr error) = 0;

  /// Waits until every run and every move has ended.
  virtual void end_step() = 0;

  /// When the moves of the last step began and ended, from its beginning; `runs` is empty.
  [[nodiscard]] virtual Timeline moves() const = 0;
};

/// Moves that somebody waits for, all together.
///
/// Thread safety: one thread at a time; the moves may end on any.
class AwaitedMoves {
 public:
  /// What one more move calls when it ends.
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

  /// Blocks until all have ended. Throws: what the first that failed failed with.
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
  // Shared with the moves: one that could not be given to an engine leaves the others under way.
  std::shared_ptr<Ends> ends_ = std::make_shared<Ends>();
};

}  // namespace spillway::prefetch
