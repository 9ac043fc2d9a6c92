#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "prefetch/plan.h"
#include "prefetch/runtime/runner/exchange_thread.h"
#include "prefetch/runtime/runner/far_lane.h"
#include "prefetch/runtime/step_memory.h"
#include "prefetch/simulate/timeline.h"
#include "um/stream.h"

namespace spillway::prefetch {

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
