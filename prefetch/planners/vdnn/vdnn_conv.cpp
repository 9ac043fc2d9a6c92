#include "prefetch/planners/vdnn/vdnn_conv.h"

#include "prefetch/planners/vdnn/vdnn_rules.h"

namespace spillway::prefetch {

std::variant<Plan, Infeasible> VdnnConv::plan(const Problem& problem) const {
  return VdnnRules{problem, VdnnPolicy::kConvolutions}.plan_statically(name());
}

}  // namespace spillway::prefetch
