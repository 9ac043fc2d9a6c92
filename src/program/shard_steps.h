#pragma once

#include <cstddef>
#include <vector>

#include "nets/network.h"
#include "prefetch/gradient_exchange.h"
#include "src/ops/backend.h"
#include "src/program/step.h"
#include "src/program/sub_step.h"
#include "src/ranks/shard_tree.h"
#include "um/bytes.h"

namespace spillway {

/// Which of the ranks of a training keeps which of the optimizer's numbers: each all of them, or a
/// slice (ZeRO, stage 1).
struct OptimizerDivision {
  std::size_t rank = 0;
  std::size_t ranks = 1;

  [[nodiscard]] bool is_whole() const { return ranks == 1; }
};

/// Gradients of fewer bytes are updated whole by every rank: a message of their own would take
/// longer, and they are little of the memory.
inline constexpr um::Bytes kSmallestDivided{64ULL << 10U};

/// Has this rank update its slice (slice_of_rank()) of each large block of parameters, or part of
/// one, and keep the optimizer's numbers of that alone. The new parameters lie in the gradient's
/// memory ("conv1.updated"), where prefetch::with_exchanges() gathers them, and a task more
/// ("conv1.take") copies them to their place. Blocks have one size on all ranks, so that these have
/// the same graph. Each number is updated as it would be without: the same bits.
///
/// `step` is made of `whole`, a training step or the same: its sub-steps keep as much less, and the
/// last one updates. Requires: gradients are not exchanged yet.
void divide_updates(Step& step, const Step& whole, const SizeModel& size_model,
                    const OptimizerDivision& division);

/// Bytes of what the optimizer keeps beside parameters.
struct OptimizerBytes {
  um::Bytes whole;  ///< on all ranks together
  um::Bytes kept;   ///< on each of them
};
[[nodiscard]] OptimizerBytes optimizer_bytes(const Step& step);

/// A batch of several ranks, cut into shards of one size, of which this rank trains some.
struct ShardedBatch {
  std::size_t batch = 1;  ///< samples of all shards
  ShardTree tree{1};
  ShardRange own;  ///< of this rank; not empty
  prefetch::BucketRule buckets;
  OptimizerDivision division;

  [[nodiscard]] std::size_t shard_size() const { return batch / tree.shards(); }
  /// Samples of this rank, and those of the batch that stand before them.
  [[nodiscard]] std::size_t own_samples() const { return own.count() * shard_size(); }
  [[nodiscard]] std::size_t samples_before() const { return own.first * shard_size(); }
  /// Whether this rank's shard begins a node of the tree, so that the sums before it have to wait.
  [[nodiscard]] bool begins_node(std::size_t shard) const {
    return tree.merges_after(own, shard) == 0;
  }
  /// Sums that had to wait and are to be added when the gradients of this rank's shard are in
  /// theirs, which are those of the shard before where it does not begin a node.
  [[nodiscard]] std::size_t sums_due_after(std::size_t shard) const {
    const std::size_t merges = tree.merges_after(own, shard);
    return merges > 0 ? merges - 1 : 0;
  }
  /// The most sums that wait at a time.
  [[nodiscard]] std::size_t waiting_sums() const;
};

/// The steps that a rank's shards take, one after the other, each on samples of its own.
struct ShardSteps {
  std::vector<RepeatedStep> steps;    ///< distinct ones; the last one exchanges and updates
  std::vector<std::size_t> sequence;  ///< by shard of this rank: which of them
};

/// The steps of one rank of a data-parallel training. Gradients of the node that is being added up
/// (ShardTree) are state, always near, in Step::gradients: a shard whose node begins writes them,
/// and one that ends a larger node adds its own, complete, to those of the node before. The last
/// step exchanges them with other ranks (exchange_gradients()) and updates, where the optimizer is
/// divided a slice (divide_updates()). Requires: the batch is
/// cut evenly. Throws: um::Error where nothing is trained.
[[nodiscard]] ShardSteps make_shard_steps(const nets::Network& network, const SizeModel& size_model,
                                          const StepOptions& options, const ShardedBatch& batch);

}  // namespace spillway
