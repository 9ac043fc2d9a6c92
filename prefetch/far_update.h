#pragma once

#include <span>
#include <vector>

#include "prefetch/plan.h"
#include "prefetch/profile.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// The updates of `graph` that the far side may run, in order: those that update offloadable
/// parameters and numbers in place with a tensor that nobody needs afterwards, where no task reads
/// the parameters after that or writes them otherwise, and where all of these blocks move in pages
/// of `page`. Several may update parts of one block. Complexity: O(accesses).
[[nodiscard]] std::vector<TaskId> far_updatable(const TaskGraph& graph, um::Bytes page);

/// The same step with `updates` on the far side: TaskGraph::far_updates in their order, tasks
/// without them. Blocks keep their ids; gradients become sent. Requires: far_updatable(), one rank.
[[nodiscard]] TaskGraph with_far_updates(TaskGraph graph, std::span<const TaskId> updates);

/// Bytes that an update on the far side reads and writes there.
[[nodiscard]] um::Bytes far_traffic(const TaskGraph& graph, const FarUpdate& update);

/// How long each far update of `graph` takes: Profile::far_updates.
[[nodiscard]] std::vector<um::Nanoseconds> far_update_times(const TaskGraph& graph,
                                                            const LinkProfile& link);

/// By far update, from when on it may run beside the moves of `plan`, at the earliest: when its
/// gradient and its parameters have left for the last time, and the parameters have come for the
/// last time. Complexity: O(moves + updates).
[[nodiscard]] std::vector<Progress> far_run_conditions(const TaskGraph& graph, const Plan& plan);

/// The far runs of a plan that has its moves, each under these conditions, in the order in which
/// the moves let them begin.
[[nodiscard]] std::vector<FarRun> earliest_far_runs(const TaskGraph& graph, const Plan& plan);

}  // namespace spillway::prefetch
