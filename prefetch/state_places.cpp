#include "prefetch/state_places.h"

namespace spillway::prefetch {

StatePlaces place_state(const TaskGraph& graph, const BlockSizes& block_sizes) {
  StatePlaces places{.offsets = std::vector<um::Bytes>(graph.data.size()), .extent = {}};
  for (std::size_t i = 0; i < graph.data.size(); ++i) {
    if (graph.data[i].kind != DataKind::kState) continue;
    places.offsets[i] = places.extent;
    places.extent += block_sizes.size(DataId(i));
  }
  return places;
}

}  // namespace spillway::prefetch
