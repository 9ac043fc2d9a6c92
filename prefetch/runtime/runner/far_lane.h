#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <vector>

#include "prefetch/plan.h"
#include "prefetch/runtime/runner/side_thread.h"
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

}  // namespace spillway::prefetch
