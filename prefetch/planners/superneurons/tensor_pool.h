#pragma once

#include <cstdint>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/liveness.h"
#include "prefetch/moves/schedule.h"
#include "prefetch/plan.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// When the tensor pool moves a tensor.
enum class TensorPolicy {
  kEager,  ///< all leave in the forward pass (SuperNeurons section 3.3.1)
  kCached  ///< the least recently used ones leave when memory is short (section 3.3.2)
};

/// SuperNeurons' Unified Tensor Pool (section 3.3): decides which tensors move in the step `runs`
/// of a graph, which must outlive it, and when. Only outputs of convolutions move, as a whole.
///
/// - Offload: "overlap with the forward computations starting from the current CONV layer to the
///   next one". Eagerly, a tensor leaves after its last forward use, and the next convolution waits
///   for it, or an earlier run if memory is short. Outputs without a convolution after their last
///   forward use stay: neither this rule nor the one for prefetches moves them.
/// - Tensor cache: a run with too little memory evicts the least recently used tensors, in either
///   pass. The plan knows that in advance, so they leave after their last use (or after the
///   convolution, if the link copies while tasks read) instead of when an allocation fails.
/// - Prefetch: "at any CONV layers in the backward, the runtime asynchronously fetches the required
///   tensors for the previous CONV layer". A tensor returns with the last convolution's backward
///   run before its next use, or as soon after that as there is room (the paper does not specify a
///   prefetch without room); without such a run, on demand.
class TensorPool {
 public:
  /// `may_offload`: if false, nothing moves.
  TensorPool(const TaskGraph& graph, const BlockSizes& block_sizes,
             const std::vector<TaskRun>& runs, bool may_offload);

  /// Returns the movable bytes near during each run when nothing is offloaded.
  [[nodiscard]] const std::vector<um::Bytes>& demand() const { return demand_; }

  /// The run that needs most when all movable tensors are far, and its need: the smallest
  /// sufficient pool.
  struct Floor {
    Position position = 0;
    um::Bytes size;
  };
  [[nodiscard]] Floor floor() const;

  /// Returns swaps that keep every run within `pool`.
  /// Requires: pool >= floor().size. Complexity: that of cover(), then O(swaps * runs).
  [[nodiscard]] std::vector<Swap> swaps(um::Bytes pool, TensorPolicy policy) const;

 private:
  void leave_eagerly(std::vector<FarInterval>& far_intervals) const;
  [[nodiscard]] Position fetch_position(const FarInterval& far_interval) const;

  const BlockSizes& block_sizes_;
  std::vector<Life> tensors_;  // movable ones
  std::vector<um::Bytes> demand_;
  std::vector<bool> is_forward_;    // by position: forward runs, without recomputations
  std::vector<Position> forward_;   // first runs of convolutions
  std::vector<Position> backward_;  // first runs of their backward tasks
};

}  // namespace spillway::prefetch
