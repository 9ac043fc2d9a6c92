#include "prefetch/planners/joint/joint.h"

#include <utility>

#include "prefetch/planners/joint/joint_search.h"

namespace spillway::prefetch {

std::variant<Plan, Infeasible> Joint::plan(const Problem& problem) const {
  auto best = joint_search(problem, limits_for(problem));
  if (!best) return infeasible(problem);
  best->plan.planner = name();
  return std::move(best->plan);
}

}  // namespace spillway::prefetch
