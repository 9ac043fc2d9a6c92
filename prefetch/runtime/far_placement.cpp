#include "prefetch/runtime/far_placement.h"

namespace spillway::prefetch {

FarPlacement::FarPlacement(const StepLayout& layout)
    : offsets{layout.state.offsets}, extent{layout.state.extent} {
  std::vector<bool> has_place(offsets.size(), false);
  for (const Move& move : layout.plan.offloads) {
    const auto data = static_cast<std::size_t>(move.data);
    if (has_place[data] || layout.graph[move.data].kind == DataKind::kState) continue;
    has_place[data] = true;
    offsets[data] = extent;
    extent += layout.block_sizes.size(move.data);
  }
}

}  // namespace spillway::prefetch
