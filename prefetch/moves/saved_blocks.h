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

/// Returns the number of forward tasks before the first task of another phase: the forward pass.
[[nodiscard]] Position forward_end(const TaskGraph& graph);

/// Returns the activations: the idle intervals at forward_end() of movable blocks that are used on
/// both sides of it. In order of production; some may be empty.
/// Requires: `lives` are of all tasks in order. Complexity: O(accesses).
[[nodiscard]] std::vector<IdleInterval> find_activations(const TaskGraph& graph,
                                                         const BlockSizes& block_sizes,
                                                         std::span<const Life> lives);

/// Returns the blocks that forward tasks use first and other tasks use again: the papers' feature
/// maps. Each is far as a whole from the run after its last forward use. A block with several
/// forward readers counts as the last one's (vDNN's reference count for forks). In order of their
/// last forward use; some may be empty.
/// Requires: every task runs once, in order. Complexity: O(accesses).
[[nodiscard]] std::vector<FarInterval> find_saved_blocks(const TaskGraph& graph,
                                                         const BlockSizes& block_sizes,
                                                         std::span<const TaskRun> runs);

/// Returns swaps that keep each block away for its whole idle interval: it leaves at once and
/// returns only when it is used. Omits empty intervals. In order of `last`.
[[nodiscard]] std::vector<Swap> away_until_used(std::span<const FarInterval> saved);

/// Consecutive backward runs of one layer.
struct BackwardLayer {
  Position layer = 0;  ///< the run of its forward task
  Position begin = 0;  ///< its first backward run
  Position end = 0;    ///< behind its last backward run
};

/// Returns the backward pass, layer by layer. A layer is a forward task and the backward tasks that
/// read its inputs; names do not matter. A run that reads inputs of several layers belongs to the
/// first of these; one that reads none belongs to the previous run's layer. Layers never increase.
/// Runs before all of them (a loss) form a layer after the last forward task.
/// Requires and complexity: as find_saved_blocks().
[[nodiscard]] std::vector<BackwardLayer> find_backward_layers(const TaskGraph& graph,
                                                              std::span<const TaskRun> runs,
                                                              std::span<const FarInterval> saved);

}  // namespace spillway::prefetch
