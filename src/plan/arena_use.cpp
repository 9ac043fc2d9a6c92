#include "src/plan/arena_use.h"

#include <utility>
#include <variant>

#include "prefetch/block_sizes.h"
#include "prefetch/placement/placed_step.h"
#include "prefetch/simulate/simulate.h"
#include "um/bytes.h"

namespace spillway {
namespace {

using prefetch::Plan;
using prefetch::Problem;
using um::Bytes;
using um::Nanoseconds;

constexpr int kPlacementTries = 5;

Nanoseconds predicted(const Problem& problem, const Plan& plan) {
  return prefetch::simulate(problem.graph, plan, problem.profile).makespan();
}

}  // namespace

std::optional<ArenaUse> arena_use(const prefetch::TaskGraph& graph, const prefetch::Plan& plan) {
  if (plan.residency == prefetch::Residency::kOnDemand || !moves_whole_blocks(plan, graph)) {
    return std::nullopt;
  }
  const um::Bytes pinned = prefetch::BlockSizes{graph, plan.page}.pinned();
  const um::Bytes room = um::saturating_difference(plan.budget, pinned);
  return ArenaUse{.extent = place_step(graph, plan, room).placement.extent, .room = room};
}

Plan with_fixed_places(const prefetch::Planner& planner, const Problem& problem, Plan plan) {
  auto use = arena_use(problem.graph, plan);
  if (!use || use->fits()) return plan;
  const Nanoseconds slowest = predicted(problem, plan) * 9 / 8;
  Problem smaller = problem;
  for (int i = 0; i < kPlacementTries; ++i) {
    const Bytes missing = um::round_up(use->extent - use->room, problem.page);
    smaller.budget = um::saturating_difference(smaller.budget, missing);
    auto planned = planner.plan(smaller);
    auto* const placed = std::get_if<Plan>(&planned);
    if (placed == nullptr) break;
    placed->budget = problem.budget;
    if (predicted(problem, *placed) > slowest) break;
    use = arena_use(problem.graph, *placed);
    if (use->fits()) return std::move(*placed);
  }
  return plan;
}

}  // namespace spillway
