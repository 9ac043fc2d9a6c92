#include "prefetch/planners/capacity.h"

#include <utility>

#include "prefetch/moves/algorithm_choice.h"
#include "prefetch/moves/offload_plan.h"

namespace spillway::prefetch {

std::variant<Plan, Infeasible> Capacity::plan(const Problem& problem) const {
  Problem whole = problem;
  whole.whole_blocks = true;
  const OffloadPlanner offload{whole};
  auto plan = offload.plan(fastest_that_fit(whole));
  if (!plan) plan = offload.plan(runs_in_order(whole.graph));
  if (!plan) return infeasible(problem);
  plan->plan.planner = name();
  return std::move(plan->plan);
}

}  // namespace spillway::prefetch
