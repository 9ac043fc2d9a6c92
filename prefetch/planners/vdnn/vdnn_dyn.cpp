#include "prefetch/planners/vdnn/vdnn_dyn.h"

#include <optional>
#include <string>
#include <utility>

#include "prefetch/planners/vdnn/vdnn_rules.h"

namespace spillway::prefetch {

std::variant<Plan, Infeasible> VdnnDyn::plan(const Problem& problem) const {
  const VdnnRules none{problem, VdnnPolicy::kNone};
  const VdnnRules convolutions{problem, VdnnPolicy::kConvolutions};
  const VdnnRules all{problem, VdnnPolicy::kAll};
  std::optional<Plan> plan = none.performance_optimal();
  if (!plan) plan = convolutions.performance_optimal();
  if (!plan) plan = all.performance_optimal();
  if (!plan) plan = convolutions.greedy();
  if (!plan) plan = all.greedy();
  if (plan) {
    plan->planner = name();
    return *std::move(plan);
  }
  const Infeasible by_convolutions = convolutions.infeasible();
  const Infeasible by_all = all.infeasible();
  return by_convolutions.smallest_budget < by_all.smallest_budget ? by_convolutions : by_all;
}

}  // namespace spillway::prefetch
