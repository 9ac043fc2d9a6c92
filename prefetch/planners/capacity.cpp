#include "prefetch/planners/capacity.h"

#include "prefetch/algorithm_choice.h"
#include "prefetch/offload_plan.h"
#include "prefetch/recomputation_search.h"

namespace spillway::prefetch {

std::variant<Plan, Infeasible> Capacity::plan(const Problem& problem) const {
  constexpr int kEvaluations = 64;
  const OffloadPlanner offload{problem};
  const auto by_offloading = [&](std::vector<TaskRun> runs) {
    return offload.plan(std::move(runs));
  };
  auto best = choose_algorithms(problem, by_offloading, kEvaluations);
  if (!best) return infeasible(problem);
  if (problem.may_recompute) best = drop_what_is_cheap(problem, *std::move(best));
  best->plan.planner = name();
  return std::move(best->plan);
}

}  // namespace spillway::prefetch
