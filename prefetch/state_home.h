#pragma once

#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/plan.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// Which pages of offloadable state are far between steps under a plan: those whose first move is a
/// prefetch that waits for no offload of theirs. All others are near. A step must end as it began.
class StateHome {
 public:
  StateHome(const TaskGraph& graph, const BlockSizes& block_sizes, const Plan& plan);

  /// By page of a movable block; empty for a tensor, and for what moves to no page of it.
  [[nodiscard]] const std::vector<bool>& far_pages(DataId data) const {
    return far_pages_[static_cast<std::size_t>(data)];
  }
  /// All of them together.
  [[nodiscard]] um::Bytes far() const { return far_; }

 private:
  std::vector<std::vector<bool>> far_pages_;  // by block
  um::Bytes far_;
};

}  // namespace spillway::prefetch
