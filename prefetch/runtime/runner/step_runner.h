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

/// Runs the far updates of a plan beside its steps, in order, each as soon as the moves it waits
/// for have ended, on a thread of its own. Without far updates it has none and does nothing.
///
/// Thread safety: one thread at a time.
class FarLane {
 public:
  /// Runs one: an index into TaskGraph::far_updates.
  using Update = std::function<void(std::uint32_t update)>;
  using Clock = std::chrono::steady_clock;

  /// The thread inherits the affinity of the caller: construct it on one that is not bound to the
  /// processors of the kernels. Both outlive it. To be destroyed while no step is under way, or
  /// when its memory has failed.
  FarLane(const Plan& plan, StepMemory& memory);

  /// `memory` has begun a step, at `begin`. `update` outlives it. Where an update fails the memory
  /// fails, too.
  void begin_step(Clock::time_point begin, const Update& update);
  /// Waits until all have ended. Throws: what the first that failed failed with.
  void end_step();
  /// The same of a step whose memory has failed, whatever they threw.
  void abandon() noexcept;

  /// When they began and ended in the last step, by far run.
  [[nodiscard]] const std::vector<Interval>& intervals() const { return intervals_; }

 private:
  void run_all();

  const Plan& plan_;
  StepMemory& memory_;
  // Of the step, which the thread reads while it is under way:
  Clock::time_point begin_;
  const Update* update_ = nullptr;
  // What the thread writes meanwhile:
  std::vector<Interval> intervals_;
  std::exception_ptr failure_;

  std::optional<SideThread> thread_;  // last: it uses all else
};

/// Launches the runs of a plan in order on a stream, each as soon as the moves it waits for have
/// ended: on a GPU ahead of the run that is under way, and nothing but the plan's own conditions
/// says how far. Far updates run beside them (FarLane), and exchanges between ranks
/// (ExchangeThread). All arguments must outlive it, and the stream's notices must have been given
/// before it ends.
class StepRunner {
 public:
  using Launch = std::function<void(Position)>;
  /// What runs on other threads beside the runs, of a plan that has such: far updates, and
  /// exchanges between ranks.
  struct Beside {
    FarLane::Update far_update = {};
    ExchangeThread::Exchange exchange = {};
  };

  StepRunner(const Plan& plan, StepMemory& memory, um::Stream& stream);

  /// Runs one step; `launch` enqueues the run at a position. Returns when all runs, moves, far
  /// updates and exchanges have ended, with their times by the stream's clock. Requires: called by
  /// work of the stream. Throws: what `launch` and `beside` throw; what a move failed with. After
  /// that only destruction is allowed.
  [[nodiscard]] Timeline run(const Launch& launch, const Beside& beside);
  [[nodiscard]] Timeline run(const Launch& launch) { return run(launch, {}); }
  /// The same without times, which on a GPU take two events a run: asks only for the ends that
  /// somebody waits for.
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
  Timeline timeline_;  // its runs are written by the stream's notices

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::uint32_t ended_ = 0;  // runs whose end the memory knows
};

}  // namespace spillway::prefetch
