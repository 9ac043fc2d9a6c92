#pragma once

#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/plan.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// The homes of offloadable state: where each page is between steps under a plan. Derived from
/// moves:
/// - far: the page's first move is a prefetch that waits for no offload of the page;
/// - near with a valid far copy: the page's first move is a clean offload. The previous step made
///   the copy by an offload after the last write and brought the page back, or no task writes the
///   state. The executor of the plan makes the copy before the first step;
/// - near without a far copy: all other pages.
///
/// A sent block (DataBlock::is_sent) is far, regardless of moves. A step must end as it began.
class StateHome {
 public:
  StateHome(const TaskGraph& graph, const BlockSizes& block_sizes, const Plan& plan);

  /// Returns by page whether it is far; empty for a tensor or a pinned block.
  [[nodiscard]] const std::vector<bool>& far_pages(DataId data) const {
    return far_pages_[static_cast<std::size_t>(data)];
  }
  /// Returns the bytes of all far pages without sent blocks: the far content when the step begins.
  [[nodiscard]] um::Bytes far() const { return far_; }
  /// Returns by page whether it is near with a valid far copy, like far_pages().
  [[nodiscard]] const std::vector<bool>& copied_pages(DataId data) const {
    return copied_pages_[static_cast<std::size_t>(data)];
  }

 private:
  std::vector<std::vector<bool>> far_pages_;     // by block
  std::vector<std::vector<bool>> copied_pages_;  // by block
  um::Bytes far_;
};

/// The places of shared movable state in one region of addresses: the beginning of the slab
/// (resident and managed modes) and of far memory (copy mode).
struct StatePlaces {
  std::vector<um::Bytes> offsets;  ///< by DataId of one graph; undefined for other blocks
  um::Bytes extent;                ///< total size, including blocks that this graph lacks
};

/// Places the state of a graph that no other step shares: consecutive blocks in order of DataId,
/// each in whole pages.
[[nodiscard]] StatePlaces place_state(const TaskGraph& graph, const BlockSizes& block_sizes);

}  // namespace spillway::prefetch
