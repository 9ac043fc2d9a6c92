#include "prefetch/block_sizes.h"

#include <algorithm>

#include "um/error.h"

namespace spillway::prefetch {

using um::Bytes;

BlockSizes::BlockSizes(const TaskGraph& graph, Bytes page) : page_{page} {
  um::expects(page > Bytes{}, "pages have a size");
  for (const DataBlock& block : graph.data) {
    const bool movable = block.may_leave() && !is_small(block.size);
    sizes_.push_back(movable ? um::round_up(block.size, page_) : Bytes{});
    movable_ += sizes_.back();
    if (movable || host_of(graph, DataId(sizes_.size() - 1))) continue;
    pinned_ += um::round_up(block.size, kNearAlignment);
  }
  Bytes largest_workspace;
  for (const Task& task : graph.tasks) {
    for (const Algorithm& algorithm : task.algorithms) {
      Bytes& largest = is_small(algorithm.workspace) ? small_workspace_ : largest_workspace;
      largest = std::max(largest, algorithm.workspace);
    }
  }
  movable_ += um::round_up(largest_workspace, page_);
  pinned_ += um::round_up(small_workspace_, kNearAlignment);
}

Bytes BlockSizes::workspace_size(Bytes workspace) const {
  return is_small(workspace) ? Bytes{} : um::round_up(workspace, page_);
}

Bytes choose_page(const TaskGraph& graph) {
  for (Bytes page = kLargestPage; page > kSmallestPage; page = Bytes{page.count() / 2}) {
    const BlockSizes block_sizes{graph, page};
    Bytes exact;
    Bytes rounded;
    for (const DataBlock& block : graph.data) {
      if (block.may_leave()) exact += block.size;
    }
    for (std::size_t i = 0; i < graph.data.size(); ++i) {
      const Bytes size = block_sizes.size(DataId(i));
      // A small pinned block shares its bytes with no other; they count as lost, too.
      const bool may_leave = graph.data[i].may_leave();
      rounded += size > Bytes{} ? size : (may_leave ? 2 * graph.data[i].size : Bytes{});
    }
    const std::uint64_t allowed = page == kLargestPage ? 120 : 105;  // percent
    if (100 * rounded <= allowed * exact) return page;
  }
  return kSmallestPage;
}

}  // namespace spillway::prefetch
