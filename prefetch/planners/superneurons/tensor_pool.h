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
  kEager,  ///< each one leaves in the forward pass (SuperNeurons section 3.3.1)
  kCached  ///< the least recently used ones leave when memory is short (section 3.3.2)
};

/// SuperNeurons' Unified Tensor Pool (section 3.3): what moves in the step `runs` of a graph, which
/// must outlive it, and when. Only outputs of convolutions move, and they move whole.
///
/// - Offload: "overlap with the forward computations starting from the current CONV layer to the
///   next one". Eagerly, a tensor leaves after its last forward use, and the next convolution after
///   that waits for it; an earlier run does where memory is short. Outputs after whose last forward
///   use no convolution comes stay: neither this rule nor the one for prefetches moves them.
/// - Tensor cache: a run that finds too little memory makes the least recently used tensors leave,
///   whatever the pass. The plan knows that beforehand, so they leave after their last use (where
///   the link copies while tasks read, after the convolution) instead of when an allocation fails.
/// - Prefetch: "at any CONV layers in the backward, the runtime asynchronously fetches the required
///   tensors for the previous CONV layer": a tensor comes back with the last convolution's backward
///   run before its next use, or as soon after that as there is room (the paper is silent on a
///   prefetch that finds none); without such a run, on demand.
class TensorPool {
 public:
  /// `may_offload`: else nothing moves.
  TensorPool(const TaskGraph& graph, const BlockSizes& block_sizes,
             const std::vector<TaskRun>& runs, bool may_offload);

  /// Movable bytes near during each run when nothing is offloaded.
  [[nodiscard]] const std::vector<um::Bytes>& demand() const { return demand_; }

  /// The run that needs most when all that may be far is far, and what it needs: no pool smaller
  /// than that will do, and each larger one does.
  struct Floor {
    Position position = 0;
    um::Bytes size;
  };
  [[nodiscard]] Floor floor() const;

  /// The swaps that keep every run within `pool`.
  /// Requires: pool >= floor().size. Complexity: that of cover(), then O(swaps * runs).
  [[nodiscard]] std::vector<Swap> swaps(um::Bytes pool, TensorPolicy policy) const;

 private:
  void leave_eagerly(std::vector<FarInterval>& far_intervals) const;
  [[nodiscard]] Position fetch_position(const FarInterval& far_interval) const;

  const BlockSizes& block_sizes_;
  std::vector<Life> tensors_;  // that may move
  std::vector<um::Bytes> demand_;
  std::vector<bool> is_forward_;    // by position: runs of the forward pass, recomputations not
  std::vector<Position> forward_;   // first runs of convolutions
  std::vector<Position> backward_;  // of their backward tasks
};

}  // namespace spillway::prefetch
