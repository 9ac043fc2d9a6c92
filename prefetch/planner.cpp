#include "prefetch/planner.h"

#include "prefetch/occupancy.h"

namespace spillway::prefetch {

Infeasible infeasible(const Problem& problem) {
  const NearNeed need = near_need(problem.graph, Occupancy{problem.graph, problem.page});
  return {.task = need.largest_task, .smallest_budget = need.smallest};
}

}  // namespace spillway::prefetch
