#pragma once

#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/plan.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// Where the pages of offloadable state are between steps under a plan, which its moves tell:
/// - far: those whose first move is a prefetch that waits for no offload of theirs;
/// - near with a valid far copy: those whose first move is an offload that is clean. The copy was
///   made by the step before, after the last write, by an offload whose page came back since, or it
///   is as old as the state where no task writes it. Before the first step, who executes the plan
///   makes it;
/// - near, and nowhere else: all others.
///
/// What is sent (DataBlock::is_sent) is far, whatever its moves. A step must end as it began.
class StateHome {
 public:
  StateHome(const TaskGraph& graph, const BlockSizes& block_sizes, const Plan& plan);

  /// By page of a movable block; empty for a tensor, and for what moves to no page of it.
  [[nodiscard]] const std::vector<bool>& far_pages(DataId data) const {
    return far_pages_[static_cast<std::size_t>(data)];
  }
  /// All of them together, but for what is sent: the content with which the step begins.
  [[nodiscard]] um::Bytes far() const { return far_; }
  /// By page, as far_pages(): which are near and have a valid far copy.
  [[nodiscard]] const std::vector<bool>& copied_pages(DataId data) const {
    return copied_pages_[static_cast<std::size_t>(data)];
  }

 private:
  std::vector<std::vector<bool>> far_pages_;     // by block
  std::vector<std::vector<bool>> copied_pages_;  // likewise
  um::Bytes far_;
};

/// Where the movable state of steps that share it lies in one region of addresses: the beginning of
/// the slab (resident and managed modes) and of far memory (copy mode).
struct StatePlaces {
  std::vector<um::Bytes> offsets;  ///< by DataId of one graph; meaningless for other blocks
  um::Bytes extent;                ///< of all of it, also of blocks that this graph lacks
};

/// Those of a graph whose state no other step shares: one block after the other in order of DataId,
/// each in whole pages.
[[nodiscard]] StatePlaces place_state(const TaskGraph& graph, const BlockSizes& block_sizes);

}  // namespace spillway::prefetch
