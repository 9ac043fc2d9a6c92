#include <utility>
#include <vector>

#include "prefetch/moves/algorithm_choice.h"
#include "prefetch/moves/offload_plan.h"
#include "prefetch/planners/strategies.h"

namespace spillway::prefetch {

std::variant<Plan, Infeasible> plan_fractional(const Problem& problem) {
  constexpr int kEvaluations = 64;
  const OffloadPlanner offload{problem};
  const auto by_offloading = [&](std::vector<TaskRun> runs) {
    return offload.plan(std::move(runs));
  };
  auto best = choose_algorithms(problem, by_offloading, kEvaluations);
  if (!best) return infeasible(problem);
  return std::move(best->plan);
}

}  // namespace spillway::prefetch
