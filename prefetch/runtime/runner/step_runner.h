#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "prefetch/plan.h"
#include "prefetch/runtime/runner/exchange_thread.h"
#include "prefetch/runtime/step_memory.h"
#include "prefetch/simulate/timeline.h"
#include "um/stream.h"

namespace spillway::prefetch {

/// Runs the far updates of a plan beside its steps, on a thread of its own. Updates run in order,
/// each as soon as the moves that it waits for have ended. Without far updates it is a no-op
/// without a thread.
///
/// Thread safety: one thread at a time.
class FarLane {
 public:
  /// Performs a far update, an index into TaskGraph::far_updates.
  using Update = std::function<void(std::uint32_t update)>;
  using Clock = std::chrono::steady_clock;

  /// The thread inherits the affinity of the caller: construct it on a thread that is not bound to
  /// the processors of the kernels. Both arguments must outlive it. Destroy it only while no step
  /// is in flight, or after its memory has failed.
  FarLane(const Plan& plan, StepMemory& memory);

  /// Starts the updates of a step that `memory` has begun at `begin`. `update` must outlive the
  /// step. If an update fails, the memory fails, too.
  void begin_step(Clock::time_point begin, const Update& update);
  /// Blocks until all have ended. Throws: the first error of an update.
  void end_step();
  /// Ends a step with failed memory: as end_step(), but ignores errors.
  void abandon() noexcept;

  /// Returns when the far updates of the last step began and ended.
  [[nodiscard]] const std::vector<Interval>& intervals() const { return intervals_; }

 private:
  void run_all();

  const Plan& plan_;
  StepMemory& memory_;
  // The current step, read by the thread:
  Clock::time_point begin_;
  const Update* update_ = nullptr;
  // Written by the thread:
  std::vector<Interval> intervals_;
  std::exception_ptr failure_;

  std::optional<SideThread> thread_;  // last: uses the other members
};

/// Launches the runs of a plan in order on a stream, each as soon as the moves it waits for have
/// ended. On a GPU, runs are submitted ahead, limited only by the plan's own conditions. Far
/// updates (FarLane) and rank exchanges (ExchangeThread) run beside them. All arguments must
/// outlive it, and the stream's notices must be delivered before its destruction.
class StepRunner {
 public:
  using Launch = std::function<void(Position)>;
  /// The plan's far updates and rank exchanges, which run on other threads.
  struct Beside {
    FarLane::Update far_update = {};
    ExchangeThread::Exchange exchange = {};
  };

  StepRunner(const Plan& plan, StepMemory& memory, um::Stream& stream);

  /// Runs one step; `launch` enqueues the run at a position. Returns the times by the stream's
  /// clock when all runs, moves, far updates and exchanges have ended. Requires: called by work
  /// of the stream. Throws: what `launch` and `beside` throw; the error of a failed move. After
  /// that only destruction is allowed.
  [[nodiscard]] Timeline run(const Launch& launch, const Beside& beside);
  [[nodiscard]] Timeline run(const Launch& launch) { return run(launch, {}); }
  /// As run(), without times, which cost two events per run on a GPU. Records only the ends that a
  /// move or exchange waits for.
  void run_untimed(const Launch& launch, const Beside& beside) {
    walk(launch, beside, /*takes_times=*/false);
  }
  void run_untimed(const Launch& launch) { run_untimed(launch, {}); }

 private:
  using Clock = std::chrono::steady_clock;

  void walk(const Launch& launch, const Beside& beside, bool takes_times);
  void launch_all(const Launch& launch, bool takes_times);
  void begin();
  void end_run(Position position);
  void end_runs(Position last);
  void wait_for_runs();

  const Plan& plan_;
  StepMemory& memory_;
  um::Stream& stream_;
  std::vector<bool> is_awaited_;  // by position
  Clock::time_point begin_;
  FarLane far_;
  ExchangeThread exchanges_;
  Timeline timeline_;  // the stream's notices write its runs

  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::uint32_t ended_ = 0;  // runs that the memory knows have ended
};

}  // namespace spillway::prefetch
