#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "prefetch/gradient_exchange.h"
#include "src/ops/backend.h"
#include "src/ranks/agreement.h"
#include "src/ranks/communicator.h"
#include "src/step/shard_steps.h"

namespace spillway {

/// How ranks add up the gradients of their shards.
enum class RankReduction {
  kTree,    ///< in one order (ShardTree): the same bits for any number of ranks
  kFastest  ///< as the library of the ranks likes; bits depend on how many they are
};

/// A training that this process is one rank of.
struct RankOptions {
  Communicator* communicator = nullptr;  ///< null: it is the only one, and there are no shards
  /// Joins the devices of all ranks, of which this one's is the context's; none where near memory
  /// is RAM, which `communicator` exchanges.
  std::function<std::unique_ptr<Communicator>(ExecutionContext&)> join_devices;
  /// What that made; null: nothing.
  Communicator* near_communicator = nullptr;
  /// So many equal parts of a batch are each trained as a sub-batch, by one of the ranks: what a
  /// training comes to depends on them, and not on the ranks.
  std::size_t shards = 1;
  prefetch::BucketRule buckets;
  /// Plans choose others where those are faster (choose_buckets()).
  bool chooses_buckets = false;
  RankReduction reduction = RankReduction::kTree;
  /// Each rank keeps a slice of the optimizer's numbers, and updates that of the parameters (ZeRO,
  /// stage 1): the same bits.
  bool divides_optimizer = false;
  std::vector<NamedText> agreement;  ///< what else must be the same on all ranks

  [[nodiscard]] bool are_used() const { return communicator != nullptr; }
  /// Requires: are_used().
  [[nodiscard]] Communicator& between_near_memory() const {
    return near_communicator != nullptr ? *near_communicator : *communicator;
  }
};

/// What this rank trains of a batch. Throws: um::Error, one sentence for the user, where the batch
/// cannot be cut so, or a rank would have nothing to do.
[[nodiscard]] ShardedBatch shard_batch(const RankOptions& options, std::size_t batch);

}  // namespace spillway
