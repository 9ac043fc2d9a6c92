#include <utility>

#include "prefetch/moves/algorithm_choice.h"
#include "prefetch/moves/offload_plan.h"
#include "prefetch/planners/strategies.h"

namespace spillway::prefetch {

std::variant<Plan, Infeasible> plan_capacity(const Problem& problem) {
  Problem whole = problem;
  whole.whole_blocks = true;
  const OffloadPlanner offload{whole};
  auto plan = offload.plan(fastest_that_fit(whole));
  if (!plan) plan = offload.plan(runs_in_order(whole.graph));
  if (!plan) return infeasible(problem);
  return std::move(plan->plan);
}

}  // namespace spillway::prefetch
