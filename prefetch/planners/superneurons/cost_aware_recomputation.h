#pragma once

#include <vector>

#include "prefetch/moves/recomputation.h"
#include "prefetch/planner.h"

namespace spillway::prefetch {

/// How SuperNeurons recomputes dropped outputs (section 3.4).
enum class RecomputationStrategy {
  kSpeedCentric,   ///< each once: a segment's outputs stay until their last use
  kMemoryCentric,  ///< again for each backward task, except for outputs that it reads itself
  kCostAware       ///< speed-centric, except in segments where that costs more memory than l_peak
};

/// Returns the outputs of all cheap layers (pooling, activation, normalization and dropout: "POOL,
/// ACT, LRN and BN" with their dropouts), to be dropped and recomputed by `strategy` in the step
/// `runs`.
///
/// A segment is a checkpoint (an output that is not dropped) and the dropped outputs that are made
/// from it. Its memory cost is the most that its live blocks and the other operands take at a
/// backward run or a recomputation that touches it: the paper's sum of l_i^f over the segment +
/// l^b. l_peak is the most that any layer needs when every segment is memory-centric, so cost-aware
/// does not need more memory than memory-centric. The paper's max(l_i) (AlexNet: 886 MiB, at LRN1
/// backward) also counts the checkpoint, which LRN1's operands do not contain. Blocks outside of
/// the segment do not count: in the paper's cost model they are offloaded.
///
/// Outputs that find_recomputable() refuses stay. An output of several cheap layers in different
/// segments belongs to the first layer's. Complexity: that of find_recomputable(), then
/// O(accesses).
[[nodiscard]] std::vector<Dropped> drop_cheap_layers(const Problem& problem,
                                                     const std::vector<TaskRun>& runs,
                                                     RecomputationStrategy strategy);

}  // namespace spillway::prefetch
