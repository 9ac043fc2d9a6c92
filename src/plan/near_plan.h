#pragma once

#include "prefetch/plan.h"
#include "prefetch/task_graph.h"

namespace spillway {

/// A plan for `near`, the step of `graph` with all of its updates near, that moves nothing and has
/// its tasks run by the algorithms of `plan`, which is of `graph`: for a run in which all is
/// resident. Tasks go by name; those that `plan` does not have, the updates, take their first
/// algorithm. Its budget is what it needs.
[[nodiscard]] prefetch::Plan near_plan(const prefetch::TaskGraph& graph, const prefetch::Plan& plan,
                                       const prefetch::TaskGraph& near);

}  // namespace spillway
