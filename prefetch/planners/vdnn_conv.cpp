#include "prefetch/planners/vdnn_conv.h"

#include <optional>
#include <string>
#include <utility>

#include "prefetch/planners/vdnn_rules.h"

namespace spillway::prefetch {

std::variant<Plan, Infeasible> VdnnConv::plan(const Problem& problem) const {
  const VdnnRules rules{problem, VdnnPolicy::kConvolutions};
  std::optional<Plan> plan = rules.performance_optimal();
  if (!plan) plan = rules.memory_optimal();
  if (!plan) return rules.infeasible();
  plan->planner = name();
  return *std::move(plan);
}

}  // namespace spillway::prefetch
