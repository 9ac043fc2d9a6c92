#include "prefetch/planners/vdnn/vdnn_all.h"

#include "prefetch/planners/vdnn/vdnn_rules.h"

namespace spillway::prefetch {

std::variant<Plan, Infeasible> VdnnAll::plan(const Problem& problem) const {
  return VdnnRules{problem, VdnnPolicy::kAll}.plan_statically(name());
}

}  // namespace spillway::prefetch
