#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/liveness.h"
#include "prefetch/moves/recomputation.h"
#include "prefetch/moves/schedule.h"
#include "prefetch/plan.h"
#include "prefetch/planner.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// The parts of SuperNeurons that can be switched off. Its liveness analysis (section 3.2) cannot:
/// every plan frees a tensor after its last use.
struct SuperNeuronsOptions {
  bool offload = true;       ///< unified tensor pool: outputs of convolutions move (section 3.3)
  bool tensor_cache = true;  ///< these move only when memory is short (section 3.3.2)
  bool recompute = true;     ///< cost-aware recomputation (section 3.4)
  bool workspace = true;     ///< fast convolutions in left-over memory (section 3.5)
};

/// Reads "no-offload", "no-cache", "no-recompute", "no-workspace", separated by commas.
/// Throws: um::Error that lists them.
[[nodiscard]] SuperNeuronsOptions parse_superneurons_switches(std::string_view text);

/// SuperNeurons (Wang et al., PPoPP 2018): liveness analysis, Unified Tensor Pool with an LRU
/// tensor cache, cost-aware recomputation, and convolution workspaces from left-over memory.
///
/// - Recomputation does not depend on the budget: drop_cheap_layers() drops and recomputes the
///   outputs of all cheap layers. The paper names no condition, and its step-wise figures apply it
///   to a network that fits. `Problem::may_recompute` switches it off, too.
/// - TensorPool then decides what moves and when: only whole outputs of convolutions (section
///   3.3.1), so outputs of joins and linear layers stay although they are checkpoints of the
///   recomputation.
/// - Finally, each task gets its fastest algorithm with a workspace that fits in the free memory at
///   all its runs. The paper speaks of convolutions; here it is every task with a choice.
///
/// Below TensorPool::floor() these rules have no plan; other strategies may have one. The paper's
/// heap and its fragmentation are not modelled.
[[nodiscard]] std::variant<Plan, Infeasible> plan_superneurons(
    const Problem& problem, const SuperNeuronsOptions& options = {});

/// Returns "superneurons", and after a colon the switches: "superneurons:no-cache,no-recompute".
[[nodiscard]] std::string superneurons_name(const SuperNeuronsOptions& options);

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
