#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "prefetch/gradient_exchange.h"
#include "src/ops/backend.h"
#include "src/program/micro_batches.h"
#include "src/program/step.h"
#include "src/ranks/agreement.h"
#include "src/ranks/communicator.h"

namespace spillway {

/// How ranks add up the gradients of their shards.
enum class RankReduction {
  kTree,    ///< in one order (ShardTree): the same bits for any number of ranks
  kFastest  ///< as the library of the ranks likes; bits depend on how many they are
};

/// How a training is divided among ranks. The default is a process alone that trains whole batches.
struct RankOptions {
  /// This rank's end of the communication between the processes.
  std::reference_wrapper<Communicator> communicator = self_communicator();
  /// Joins the devices of all ranks; this rank's is the context's. Null, or empty, where near
  /// memory is RAM, which `communicator` exchanges.
  std::function<std::unique_ptr<Communicator>(ExecutionContext&)> join_devices;
  /// The result of `join_devices`; nullopt where near memory is RAM.
  std::optional<std::reference_wrapper<Communicator>> device_communicator;
  /// Number of equal parts of a batch, each trained as a sub-batch by one of the ranks; nullopt:
  /// the batch is not sharded. Results depend on the shards, not on the ranks. Several ranks need
  /// as many shards at least.
  std::optional<std::size_t> shards;
  prefetch::BucketRule buckets;
  /// Plans choose others where those are faster (choose_buckets()).
  bool chooses_buckets = false;
  RankReduction reduction = RankReduction::kTree;
  /// Each rank keeps a slice of the optimizer's numbers, and updates that of the parameters (ZeRO,
  /// stage 1): the same bits.
  bool divides_optimizer = false;
  std::vector<NamedText> agreement;  ///< what else must be the same on all ranks

  /// The communicator that exchanges near memory.
  [[nodiscard]] Communicator& between_near_memory() const {
    return device_communicator.value_or(communicator);
  }
};

/// Throws: um::Error, one sentence for the user, when the batch cannot be cut into the shards, or a
/// rank would have none. Requires: shards.
void expect_whole_shards(const RankOptions& options, std::size_t batch);

/// Returns the part of a batch that this rank trains. Requires: shards. Throws: as
/// expect_whole_shards().
[[nodiscard]] MicroBatches shard_batch(const RankOptions& options, std::size_t batch);

/// Makes the program of a rank's part of a batch that of one rank among several: its gradients are
/// exchanged, and with `divides_optimizer` it updates a slice. Does nothing for a rank alone.
void share_program(Step& program, const SizeModel& size_model, const RankOptions& options);

}  // namespace spillway
