#include "prefetch/planners/vdnn_all.h"

#include <optional>
#include <string>
#include <utility>

#include "prefetch/planners/vdnn_rules.h"

namespace spillway::prefetch {

std::variant<Plan, Infeasible> VdnnAll::plan(const Problem& problem) const {
  const VdnnRules rules{problem, VdnnPolicy::kAll};
  std::optional<Plan> plan = rules.performance_optimal();
  if (!plan) plan = rules.memory_optimal();
  if (!plan) return rules.infeasible();
  plan->planner = name();
  return *std::move(plan);
}

}  // namespace spillway::prefetch
