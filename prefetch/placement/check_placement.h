#pragma once

#include <optional>
#include <span>

#include "prefetch/placement/interval_placement.h"
#include "prefetch/placement/near_intervals.h"
#include "prefetch/plan.h"
#include "prefetch/task_graph.h"
#include "prefetch/verify/violation.h"

namespace spillway::prefetch {

/// Proves that no two of `intervals` that may be at the same time share addresses, whatever the
/// timing of `plan`, and that all lie within the placement's extent; or says which do not.
///
/// Shares nothing with place_intervals(): for each end of a near interval it lets everything else
/// of the plan go on without it for ever; what begins nevertheless may be beside that near
/// interval.
///
/// Requires: `plan` verifies; `intervals` are its. Complexity: O(runs + moves + n log n), n near
/// intervals.
[[nodiscard]] std::optional<Violation> check_placement(const TaskGraph& graph, const Plan& plan,
                                                       std::span<const NearInterval> intervals,
                                                       const IntervalPlacement& placement);

}  // namespace spillway::prefetch
