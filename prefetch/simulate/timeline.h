#pragma once

#include <algorithm>
#include <vector>

#include "prefetch/plan.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// When something began and ended, from the start of the step.
struct Interval {
  um::Nanoseconds begin{0};
  um::Nanoseconds end{0};
  friend bool operator==(const Interval&, const Interval&) = default;
};

/// When everything in a plan happened: predicted by simulate(), or measured by the runtime.
struct Timeline {
  std::vector<Interval> runs;
  std::vector<Interval> offloads;
  std::vector<Interval> prefetches;
  std::vector<Interval> far_runs;
  std::vector<Interval> exchanges;

  /// Length of the step: when its last run ended, its last move (state leaves after its last use),
  /// its last update on the far side, and its last exchange.
  [[nodiscard]] um::Nanoseconds makespan() const {
    um::Nanoseconds end{0};
    for (const auto* queue : {&runs, &offloads, &prefetches, &far_runs, &exchanges}) {
      if (!queue->empty()) end = std::max(end, queue->back().end);
    }
    return end;
  }
};

/// Time in which ranks exchanged gradients, and of it, in which a task ran, too.
struct ExchangeShare {
  um::Nanoseconds exchanging{0};
  um::Nanoseconds beside_runs{0};
};

[[nodiscard]] ExchangeShare exchange_share(const Timeline& timeline);

/// Near memory in use from one moment on.
struct MemorySample {
  um::Nanoseconds time{0};
  um::Bytes near;
};

/// Near memory over the step when `plan` runs as `timeline` says, everything that is always near
/// included. For a plan that pages on demand: the live blocks, whether near or not.
/// Requires: `timeline` has an interval for each of the plan's runs.
[[nodiscard]] std::vector<MemorySample> memory_curve(const TaskGraph& graph, const Plan& plan,
                                                     const Timeline& timeline);

}  // namespace spillway::prefetch
