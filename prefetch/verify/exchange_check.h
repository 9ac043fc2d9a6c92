#pragma once

#include <optional>

#include "prefetch/block_sizes.h"
#include "prefetch/plan.h"
#include "prefetch/task_graph.h"
#include "prefetch/verify/verify.h"

namespace spillway::prefetch {

/// Checks that each exchange of `graph` takes place once, when its gradients are complete and near.
/// No run may use them meanwhile, or deadlock on an exchange.
/// Complexity: O(runs with their operands).
[[nodiscard]] std::optional<Violation> check_exchanges(const TaskGraph& graph, const Plan& plan);

/// Checks that the far side runs each far update once, when all its inputs are far and no task
/// reads its blocks. Its gradient and its parameters have left for the last time, and are far when
/// the step begins and ends. Tasks only read the parameters, and do not use the optimizer state.
///
/// Requires: the plan passed check_residency().
[[nodiscard]] std::optional<Violation> check_far_runs(const TaskGraph& graph,
                                                      const BlockSizes& block_sizes,
                                                      const Plan& plan);

}  // namespace spillway::prefetch
