#pragma once

#include <optional>
#include <span>

#include "prefetch/plan.h"
#include "prefetch/task_graph.h"
#include "prefetch/violation.h"

namespace spillway::prefetch {

/// Checks that the sequence `runs` computes what running every task once, in order, computes: each
/// task runs exactly once in its place, and a recomputation reads the values that the first run
/// read and so writes the same ones again.
///
/// Works by value numbering: every write gives a block a number that depends on the task and on the
/// numbers of what it read. No arithmetic is looked at.
[[nodiscard]] std::optional<Violation> check_dataflow(const TaskGraph& graph,
                                                      std::span<const TaskRun> runs);

}  // namespace spillway::prefetch
