#pragma once

#include <vector>

#include "prefetch/need.h"
#include "prefetch/plan.h"
#include "prefetch/planner.h"

namespace spillway::prefetch {

/// What a sequence of runs needs when nothing is moved, everything included, and the task that
/// decides it.
[[nodiscard]] Infeasible need_of(const Problem& problem, const std::vector<TaskRun>& runs);

/// The plan that executes `runs` and moves nothing. Each task gets its fastest algorithm among
/// those whose workspace fits in the budget beside what is live at each of its runs (SuperNeurons
/// section 3.5: left-over memory); runs[i].algorithm is what it has otherwise. Requires:
/// need_of(problem, runs) is within the budget. Complexity: O(accesses + runs * algorithms).
[[nodiscard]] Plan plan_without_moves(const Problem& problem, std::vector<TaskRun> runs);

}  // namespace spillway::prefetch
