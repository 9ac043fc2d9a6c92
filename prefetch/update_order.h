#pragma once

#include <span>
#include <vector>

#include "prefetch/task_graph.h"

namespace spillway::prefetch {

/// An order of the tasks of a graph with exchanges in which those of Phase::kUpdate leave time for
/// them: at the end, in order of the exchanges that they need. Where they update state that may be
/// far, which would then come twice in a step, each one follows as soon as the bucket after its own
/// is ready and no task needs the old values any more. Where slices of parameters are updated, and
/// gathered, each update follows so early, too, and what takes the gathered ones one more bucket
/// later. All other tasks stay in order.
/// Throws: um::Error where a task uses what an earlier update writes, or overwrites what one reads.
[[nodiscard]] std::vector<TaskId> update_order(const TaskGraph& graph);

/// The graph with its tasks in this order, in which those that depend on each other keep theirs,
/// and its exchanges in the order in which they are ready then.
[[nodiscard]] TaskGraph in_order(TaskGraph graph, std::span<const TaskId> order);

}  // namespace spillway::prefetch
