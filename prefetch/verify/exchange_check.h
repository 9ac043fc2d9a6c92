#pragma once

#include <optional>

#include "prefetch/plan.h"
#include "prefetch/task_graph.h"
#include "prefetch/verify/violation.h"

namespace spillway::prefetch {

/// Checks that each exchange of `graph` takes place once, when its gradients are complete and near,
/// that no run uses one of them meanwhile, and that nobody waits for an exchange for ever.
/// Complexity: O(runs with their operands).
[[nodiscard]] std::optional<Violation> check_exchanges(const TaskGraph& graph, const Plan& plan);

}  // namespace spillway::prefetch
