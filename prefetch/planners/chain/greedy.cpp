#include <optional>
#include <utility>
#include <vector>

#include "prefetch/moves/algorithm_choice.h"
#include "prefetch/moves/ordered_offload.h"
#include "prefetch/planners/chain/chain_planners.h"

namespace spillway::prefetch {

std::variant<Plan, Infeasible> plan_greedy(const Problem& problem) {
  constexpr int kEvaluations = 64;
  const auto offload_the_first = [&](std::vector<TaskRun> runs) -> std::optional<EvaluatedPlan> {
    const OrderedOffload offload{problem, std::move(runs)};
    const auto chosen = offload.extended(std::vector<bool>(offload.saved().size(), false));
    return chosen ? offload.plan(*chosen) : std::nullopt;
  };
  auto best = choose_algorithms(problem, offload_the_first, kEvaluations);
  if (!best) return infeasible_for_activations(problem);
  return std::move(best->plan);
}

}  // namespace spillway::prefetch
