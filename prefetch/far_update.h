#pragma once

#include <span>
#include <vector>

#include "prefetch/plan.h"
#include "prefetch/profile.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// Returns the updates of `graph` that the far side may run, in order. They update offloadable
/// parameters and optimizer state in place, with a gradient tensor that is dead afterwards. Later
/// tasks do not read the parameters, and no other task writes them. All these blocks are movable in
/// pages of `page`. Several updates may cover parts of one block. Complexity: O(accesses).
[[nodiscard]] std::vector<TaskId> far_updatable(const TaskGraph& graph, um::Bytes page);

/// Moves `updates` to the far side: from the tasks to TaskGraph::far_updates, in their order.
/// Blocks keep their ids; gradients become sent. Requires: far_updatable().
[[nodiscard]] TaskGraph with_far_updates(TaskGraph graph, std::span<const TaskId> updates);

/// Returns the bytes that an update on the far side reads and writes there.
[[nodiscard]] um::Bytes far_traffic(const TaskGraph& graph, const FarUpdate& update);

/// Returns the duration of each far update of `graph`: Profile::far_updates.
[[nodiscard]] std::vector<um::Nanoseconds> far_update_times(const TaskGraph& graph,
                                                            const LinkProfile& link);

/// Returns for each far update the earliest progress of `plan` at which it may run: its gradient
/// and its parameters have been offloaded for the last time, no task reads the parameters while
/// they leave, and they have been prefetched for the last time. Complexity: O(moves + updates).
[[nodiscard]] std::vector<Progress> far_run_conditions(const TaskGraph& graph, const Plan& plan);

/// Returns the far runs of a plan with these moves, in the order in which their conditions become
/// true.
[[nodiscard]] std::vector<FarRun> earliest_far_runs(const TaskGraph& graph, const Plan& plan);

}  // namespace spillway::prefetch
