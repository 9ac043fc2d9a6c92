#include "prefetch/planners/vdnn/vdnn_plus.h"

#include <string>

namespace spillway::prefetch {

std::variant<Plan, Infeasible> VdnnPlus::plan(const Problem& problem) const {
  auto result = VdnnDyn{}.plan(problem);
  if (auto* const plan = std::get_if<Plan>(&result)) plan->planner = name();
  return result;
}

}  // namespace spillway::prefetch
