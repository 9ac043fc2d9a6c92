#include "src/plan/arena_use.h"

#include "prefetch/block_sizes.h"
#include "prefetch/placement/placed_step.h"

namespace spillway {

std::optional<ArenaUse> arena_use(const prefetch::TaskGraph& graph, const prefetch::Plan& plan) {
  if (plan.residency == prefetch::Residency::kOnDemand || !moves_whole_blocks(plan, graph)) {
    return std::nullopt;
  }
  const um::Bytes room = prefetch::BlockSizes{graph, plan.page}.pool(plan.budget);
  return ArenaUse{.extent = place_step(graph, plan, room).placement.extent, .room = room};
}

}  // namespace spillway
