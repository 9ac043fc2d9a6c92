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

/// The number of forward tasks before the first task of another phase: where the forward pass ends.
[[nodiscard]] Position forward_end(const TaskGraph& graph);

/// The idle intervals at forward_end() of the movable blocks that are needed on both sides of it:
/// the activations. They are in order of production, and some may hold no run.
/// Requires: `lives` are of all tasks in order. Complexity: O(accesses).
[[nodiscard]] std::vector<IdleInterval> find_activations(const TaskGraph& graph,
                                                         const BlockSizes& block_sizes,
                                                         std::span<const Life> lives);

/// The blocks that forward tasks use first and other tasks then use again: what the papers call
/// feature maps. Each is far, whole, from the run after its last forward use on. A block with
/// several forward readers counts as the last one's (vDNN's reference count for forks). They are in
/// order of their last forward use, and some may hold no run.
/// Requires: every task runs once, in order. Complexity: O(accesses).
[[nodiscard]] std::vector<FarInterval> find_saved_blocks(const TaskGraph& graph,
                                                         const BlockSizes& block_sizes,
                                                         std::span<const TaskRun> runs);

/// Each of them away for its whole idle interval: it leaves at once and comes back only when it is
/// used. Those that hold no run are left out. In order of `last`.
[[nodiscard]] std::vector<Swap> away_until_used(std::span<const FarInterval> saved);

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
                                                              std::span<const FarInterval> saved);

}  // namespace spillway::prefetch
