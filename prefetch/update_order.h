#pragma once

#include <span>
#include <vector>

#include "prefetch/task_graph.h"

namespace spillway::prefetch {

/// Returns an order of the tasks of a graph with exchanges in which updates leave time for the
/// exchanges. Updates come last, in order of the exchanges that they need. An update of offloadable
/// state, which would otherwise be prefetched twice in a step, follows once the bucket after its
/// own is ready and no task needs the old values any more. Updates of slices that are gathered
/// follow as early, and users of gathered parameters one bucket later. All other tasks stay in
/// order. Requires: exchanges in the order of with_exchanges(), which in_order() changes.
/// Throws: um::Error if a task uses what an earlier update writes, or overwrites what one reads.
[[nodiscard]] std::vector<TaskId> update_order(const TaskGraph& graph);

/// Returns the graph with tasks in `order`, which must keep dependencies, and exchanges in the
/// order in which they are ready.
[[nodiscard]] TaskGraph in_order(TaskGraph graph, std::span<const TaskId> order);

}  // namespace spillway::prefetch
