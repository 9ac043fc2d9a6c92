#include "src/plan/arena_use.h"

#include "prefetch/block_sizes.h"
#include "prefetch/placement/placed_step.h"

namespace spillway {

std::optional<ArenaUse> arena_use(const prefetch::TaskGraph& graph, const prefetch::Plan& plan) {
  if (plan.residency == prefetch::Residency::kOnDemand || !moves_whole_blocks(plan, graph)) {
    return std::nullopt;
  }
  const um::Bytes pinned = prefetch::BlockSizes{graph, plan.page}.pinned();
  const um::Bytes room = um::saturating_difference(plan.budget, pinned);
  return ArenaUse{.extent = place_step(graph, plan, room).placement.extent, .room = room};
}

}  // namespace spillway
