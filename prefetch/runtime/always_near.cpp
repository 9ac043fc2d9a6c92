#include "prefetch/runtime/always_near.h"

#include "um/error.h"

namespace spillway::prefetch {
namespace {

using um::Bytes;

bool is_small_tensor(const TaskGraph& graph, const Occupancy& occupancy, DataId id) {
  return graph[id].kind == DataKind::kTensor && !occupancy.is_movable(id);
}

}  // namespace

Bytes AlwaysNear::buffer_size(const TaskGraph& graph, const Occupancy& occupancy) {
  Bytes size = um::round_up(occupancy.small_workspace(), kNearAlignment);
  for (std::size_t i = 0; i < graph.data.size(); ++i) {
    if (is_small_tensor(graph, occupancy, DataId(i))) {
      size += um::round_up(graph.data[i].size, kNearAlignment);
    }
  }
  return size;
}

AlwaysNear::AlwaysNear(const TaskGraph& graph, const Occupancy& occupancy,
                       std::span<std::byte* const> state, um::Range buffer)
    : addresses_(state.begin(), state.end()) {
  um::expects(state.size() == graph.data.size(), "one state address a block");
  um::expects(buffer.size() >= buffer_size(graph, occupancy).count(), "a large enough buffer");
  std::byte* next = buffer.data();
  small_workspace_ = next;
  next += um::round_up(occupancy.small_workspace(), kNearAlignment).count();
  for (std::size_t i = 0; i < graph.data.size(); ++i) {
    if (!is_small_tensor(graph, occupancy, DataId(i))) continue;
    addresses_[i] = next;
    next += um::round_up(graph.data[i].size, kNearAlignment).count();
  }
}

}  // namespace spillway::prefetch
