#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "prefetch/moves/algorithm_choice.h"
#include "prefetch/moves/ordered_offload.h"
#include "prefetch/planners/chain/chain.h"
#include "prefetch/planners/chain/chain_offload.h"
#include "prefetch/planners/chain/chain_planners.h"

namespace spillway::prefetch {
namespace {

// The flags of the saved blocks that make up the offloaded x_i: those that stage i - 1 produces.
std::vector<bool> choose(const Problem& problem, const std::vector<TaskRun>& runs,
                         const std::vector<IdleInterval>& saved) {
  constexpr std::size_t kStages = 4096;
  const BlockSizes block_sizes{problem.graph, problem.page};
  const Chain chain = linearise(problem.graph, problem.profile, block_sizes, runs, kStages);
  const auto best =
      best_chain_offload(chain, block_sizes.pool(problem.budget), problem.profile.link);
  std::vector<bool> chosen(saved.size(), false);
  if (!best) return chosen;
  std::size_t stage = 0;  // saved blocks are in order of production
  for (std::size_t i = 0; i < saved.size(); ++i) {
    while (chain.stages[stage].forward.end <= saved[i].begin) ++stage;
    chosen[i] = stage + 1 < chain.stages.size() && best->offloaded[stage + 1];
  }
  return chosen;
}

}  // namespace

std::variant<Plan, Infeasible> plan_dynprog(const Problem& problem) {
  constexpr int kEvaluations = 2;
  const auto offload_chosen =
      [&](const std::vector<TaskRun>& runs) -> std::optional<EvaluatedPlan> {
    const OrderedOffload offload{problem, runs};
    const auto chosen = offload.extended(choose(problem, runs, offload.saved()));
    return chosen ? offload.plan(*chosen) : std::nullopt;
  };
  auto best = choose_algorithms(problem, offload_chosen, kEvaluations);
  if (!best) return infeasible_for_activations(problem);
  return std::move(best->plan);
}

}  // namespace spillway::prefetch
