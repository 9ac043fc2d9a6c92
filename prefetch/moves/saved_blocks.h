#pragma once

#include <span>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/liveness.h"
#include "prefetch/moves/cover.h"
#include "prefetch/moves/schedule.h"
#include "prefetch/plan.h"
#include "prefetch/task_graph.h"

namespace spillway::prefetch {

/// A movable tensor that the forward pass is done with and the backward pass uses again: what the
/// papers call a feature map, or an activation.
struct SavedBlock {
  FarInterval gap;        ///< the whole block, away from the run after its last forward use on
  bool is_input = false;  ///< that last use only reads it: it is an input of this layer
};

/// The saved blocks of a step without recomputation, in order of their last forward use. A block
/// with several forward readers counts as the last one's (vDNN's reference count for forks).
/// Requires: every task runs once, in order. Complexity: O(accesses).
[[nodiscard]] std::vector<SavedBlock> find_saved_blocks(const TaskGraph& graph,
                                                        const BlockSizes& block_sizes,
                                                        std::span<const TaskRun> runs);

/// Each of them away for its whole gap: it leaves at once and comes back only when it is used.
/// Those are left out whose gap holds no run. In order of `last`.
[[nodiscard]] std::vector<Swap> away_until_used(std::span<const SavedBlock> saved);

/// Consecutive backward runs of one layer.
struct BackwardLayer {
  Position layer = 0;  ///< the run of its forward task
  Position begin = 0;  ///< its first backward run
  Position end = 0;    ///< after its last
};

/// The backward pass, layer by layer. A layer is a forward task and the backward tasks that read
/// its inputs; names are not looked at. A backward run that reads inputs of several layers belongs
/// to the first of these, one that reads none to the layer of the run before it; layers never go up
/// again. What comes before all of them (a loss) is a layer after the last forward task.
/// Requires and complexity: as find_saved_blocks().
[[nodiscard]] std::vector<BackwardLayer> find_backward_layers(const TaskGraph& graph,
                                                              std::span<const TaskRun> runs,
                                                              std::span<const SavedBlock> saved);

}  // namespace spillway::prefetch
