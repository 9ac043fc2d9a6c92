#pragma once

#include <cstddef>
#include <vector>

#include "nets/network.h"
#include "prefetch/gradient_exchange.h"
#include "src/ranks/shard_tree.h"
#include "src/step/divided_updates.h"
#include "src/step/sub_step.h"
#include "um/bytes.h"

namespace spillway {

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
