#include "prefetch/runtime/pinned_blocks.h"

#include "um/error.h"

namespace spillway::prefetch {
namespace {

using um::Bytes;

bool is_small_tensor(const TaskGraph& graph, const BlockSizes& block_sizes, DataId id) {
  return graph[id].kind == DataKind::kTensor && !block_sizes.is_movable(id);
}

}  // namespace

Bytes PinnedBlocks::buffer_size(const TaskGraph& graph, const BlockSizes& block_sizes) {
  Bytes size = um::round_up(block_sizes.small_workspace(), kNearAlignment);
  for (std::size_t i = 0; i < graph.data.size(); ++i) {
    if (is_small_tensor(graph, block_sizes, DataId(i))) {
      size += um::round_up(graph.data[i].size, kNearAlignment);
    }
  }
  return size;
}

PinnedBlocks::PinnedBlocks(const TaskGraph& graph, const BlockSizes& block_sizes,
                           std::span<std::byte* const> state, um::Range buffer)
    : addresses_(state.begin(), state.end()) {
  um::expects(state.size() == graph.data.size(), "one state address a block");
  um::expects(buffer.size() >= buffer_size(graph, block_sizes).count(), "a large enough buffer");
  std::byte* next = buffer.data();
  small_workspace_ = next;
  next += um::round_up(block_sizes.small_workspace(), kNearAlignment).count();
  for (std::size_t i = 0; i < graph.data.size(); ++i) {
    if (!is_small_tensor(graph, block_sizes, DataId(i))) continue;
    addresses_[i] = next;
    next += um::round_up(graph.data[i].size, kNearAlignment).count();
  }
}

}  // namespace spillway::prefetch
