#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "prefetch/plan.h"
#include "prefetch/runtime/step_memory.h"
#include "prefetch/simulate/timeline.h"

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
  /// processors of the kernels. Both outlive it.
  FarLane(const Plan& plan, StepMemory& memory);
  FarLane(const FarLane&) = delete;
  FarLane& operator=(const FarLane&) = delete;
  /// Requires: no step is under way, or its memory has failed.
  ~FarLane();

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
  void work();
  void run_all();

  const Plan& plan_;
  StepMemory& memory_;
  Clock::time_point begin_;          // of the step, which the lane reads while it is under way
  std::vector<Interval> intervals_;  // which the lane writes meanwhile
  std::exception_ptr failure_;       // likewise

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  const Update* update_ = nullptr;  // while a step is under way
  bool is_stopped_ = false;

  std::thread thread_;  // last: it uses all else
};

}  // namespace spillway::prefetch
