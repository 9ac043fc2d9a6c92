#include "prefetch/planners/capacity.h"

#include <utility>

#include "prefetch/algorithm_choice.h"
#include "prefetch/offload_plan.h"

namespace spillway::prefetch {

std::variant<Plan, Infeasible> Capacity::plan(const Problem& problem) const {
  Problem whole = problem;
  whole.whole_blocks = true;
  auto plan = OffloadPlanner{whole}.plan(fastest_that_fit(whole));
  if (!plan) return infeasible(problem);
  plan->plan.planner = name();
  return std::move(plan->plan);
}

}  // namespace spillway::prefetch
