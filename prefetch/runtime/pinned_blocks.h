#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// The addresses of what is never moved: state, small tensors, and the buffer that small workspaces
/// share.
class PinnedBlocks {
 public:
  /// Bytes that the small tensors and the small-workspace buffer of a graph take.
  [[nodiscard]] static um::Bytes buffer_size(const TaskGraph& graph, const BlockSizes& block_sizes);

  /// `state` holds the address of every state block, by DataId (null for tensors); `buffer` has at
  /// least buffer_size().
  PinnedBlocks(const TaskGraph& graph, const BlockSizes& block_sizes,
               std::span<std::byte* const> state, um::Range buffer);

  /// Null for a movable block.
  [[nodiscard]] std::byte* address(DataId id) const {
    return addresses_[static_cast<std::size_t>(id)];
  }
  [[nodiscard]] std::byte* small_workspace() const { return small_workspace_; }

 private:
  std::vector<std::byte*> addresses_;
  std::byte* small_workspace_ = nullptr;
};

}  // namespace spillway::prefetch
