#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "prefetch/plan.h"
#include "prefetch/profile.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// Begin and end, from the start of the step.
struct Interval {
  um::Nanoseconds begin{0};
  um::Nanoseconds end{0};
  friend bool operator==(const Interval&, const Interval&) = default;
};

/// The page faults of one run without hints.
struct RunFaults {
  std::uint64_t faults = 0;
  um::Bytes fetched;       ///< far to near
  um::Bytes written_back;  ///< near to far
  um::Nanoseconds time{0};
};

/// The times of everything in a plan: predicted by simulate(), or measured by the runtime.
struct Timeline {
  std::vector<Interval> runs;
  std::vector<Interval> offloads;
  std::vector<Interval> prefetches;
  std::vector<Interval> far_runs;
  std::vector<Interval> exchanges;
  std::vector<RunFaults> faults;  ///< by run, of a plan that pages on demand; else empty

  /// Returns the length of the step: the end of its last run, move (state leaves after its last
  /// use), far update or exchange.
  [[nodiscard]] um::Nanoseconds makespan() const {
    um::Nanoseconds end{0};
    for (const auto* queue : {&runs, &offloads, &prefetches, &far_runs, &exchanges}) {
      if (!queue->empty()) end = std::max(end, queue->back().end);
    }
    return end;
  }
};

/// The time in which ranks exchanged gradients, and the part of it in which a task ran, too.
struct ExchangeShare {
  um::Nanoseconds exchanging{0};
  um::Nanoseconds beside_runs{0};
};

[[nodiscard]] ExchangeShare exchange_share(const Timeline& timeline);

/// Near memory in use from `time` on.
struct MemorySample {
  um::Nanoseconds time{0};
  um::Bytes near;
};

/// Returns near memory over the step when `plan` runs as `timeline` says, including everything that
/// is always near. For a plan that pages on demand: live blocks, near or not.
/// Requires: `timeline` has an interval for each of the plan's runs.
[[nodiscard]] std::vector<MemorySample> memory_curve(const TaskGraph& graph, const Plan& plan,
                                                     const Timeline& timeline);

/// Variation of a simulation.
struct SimulateOptions {
  double noise =
      0;  ///< each run's time is multiplied by a number drawn from [1 - noise, 1 + noise]
  std::uint64_t seed = 0;
};

/// Returns the compute time of each run of `plan` in nanoseconds, with the options' noise.
[[nodiscard]] std::vector<double> run_times(const Plan& plan, const Profile& profile,
                                            const SimulateOptions& options);

/// The purpose of a stretch of near memory.
enum class NearPurpose {
  kPinned,    ///< never moves: state, small tensors, the buffer of small workspaces
  kState,     ///< offloadable state
  kSaved,     ///< written by the forward pass, read by the backward pass
  kPassing,   ///< written and consumed by the forward pass
  kGradient,  ///< written by the backward pass
  kWorkspace  ///< of one run
};

/// Returns "always near", "state", "saved", "passing", "gradient" or "workspace".
[[nodiscard]] std::string to_string(NearPurpose purpose);

/// A change by `bytes` of one holder's near memory.
struct NearChange {
  um::Nanoseconds time{0};
  std::int64_t bytes = 0;
  NearPurpose purpose = NearPurpose::kPinned;
  std::uint32_t holder = 0;  ///< the run of a workspace, the DataId of a block
};

/// Returns the changes of near memory in order of time when `plan` runs as `timeline` says; at
/// equal times, releases come first. Everything that is always near is one holder, at time 0. For a
/// plan that pages on demand: live blocks, near or not.
/// Requires: `timeline` has an interval for each of the plan's runs.
[[nodiscard]] std::vector<NearChange> near_changes(const TaskGraph& graph, const Plan& plan,
                                                   const Timeline& timeline);

}  // namespace spillway::prefetch
