#pragma once

#include <optional>

#include "prefetch/block_sizes.h"
#include "prefetch/plan.h"
#include "prefetch/task_graph.h"
#include "prefetch/verify/verify.h"

namespace spillway::prefetch {

/// Checks that each exchange of `graph` takes place once, when its gradients are complete and near,
/// that no run uses one of them meanwhile, and that nobody waits for an exchange for ever.
/// Complexity: O(runs with their operands).
[[nodiscard]] std::optional<Violation> check_exchanges(const TaskGraph& graph, const Plan& plan);

/// Checks that the far side runs each far update once, on far memory that has all it needs and that
/// nobody reads meanwhile: its gradient and its parameters have left for the last time, and are far
/// as the step begins and ends; tasks only read the parameters, and use none of its numbers.
///
/// Requires: the plan passed check_residency().
[[nodiscard]] std::optional<Violation> check_far_runs(const TaskGraph& graph,
                                                      const BlockSizes& block_sizes,
                                                      const Plan& plan);

}  // namespace spillway::prefetch
