#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/program/shard_steps.h"
#include "src/ranks/communicator.h"
#include "src/train/data_parallel/rank_options.h"
#include "src/train/data_parallel/shard_gradients.h"
#include "um/bytes.h"
#include "um/memory.h"

namespace spillway {

/// Running statistics of batch norms in a batch of shards. Each shard is normalised by its own
/// statistics, and begins with the running ones that the batch began with. The batch leaves the
/// mean of its shards' running statistics, added up in order: they move once a batch, the same on
/// all ranks.
///
/// Thread safety: none.
class ShardStatistics {
 public:
  /// Returns the near memory that it takes for `statistics`.
  [[nodiscard]] static um::Bytes near_memory(const ShardedBatch& batch, um::Bytes statistics);

  /// `blocks` are the statistics, which outlive it. Throws: um::OutOfMemory.
  ShardStatistics(const ShardedBatch& batch, Communicator& communicator,
                  std::vector<std::span<float>> blocks, um::Memory& memory);

  /// To be called before and after the step of each shard of this rank, in order.
  void begin_shard(std::size_t shard);
  void end_shard(std::size_t shard);
  /// After all of them. Throws: what Communicator throws.
  void end_batch();

 private:
  // The statistics that the batch began with, and those that a shard left.
  [[nodiscard]] std::span<float> before() const { return copy(0); }
  [[nodiscard]] std::span<float> left_by(std::size_t shard) const { return copy(1 + shard); }
  [[nodiscard]] std::span<float> copy(std::size_t place) const;
  void store(std::span<float> to) const;
  void load(std::span<const float> from) const;

  ShardedBatch batch_;
  Communicator& communicator_;
  std::vector<std::span<float>> blocks_;
  std::size_t count_ = 0;  // of numbers
  um::Block block_;
};

/// The result of one shard's step.
struct ShardResult {
  float loss = 0;  ///< its part of the mean over the batch
  float correct = 0;
};

/// One rank's part in the steps of a data-parallel training, shard by shard: the sums and the
/// statistics that it exchanges with the others.
///
/// Thread safety: as ShardGradients.
class RankStep {
 public:
  /// Returns the near memory that the shards of a rank take beside the blocks of their steps.
  /// `last` is the last step.
  [[nodiscard]] static um::Bytes near_memory(const ShardedBatch& batch, const RankOptions& options,
                                             const Step& last);

  /// All but the batch outlive it. `statistics` are the running statistics of batch norms. Throws:
  /// um::OutOfMemory.
  RankStep(const ShardedBatch& batch, const RankOptions& options, GradientBuckets gradients,
           std::vector<std::span<float>> statistics, um::Memory& memory);

  [[nodiscard]] const ShardedBatch& batch() const { return batch_; }

  /// Begins a batch. Returns the sum of all ranks' `counted`: the labels of their samples that
  /// count.
  [[nodiscard]] std::size_t begin_batch(std::size_t counted);
  /// To be called before and after the step of each shard of this rank, in order.
  void begin_shard(std::size_t shard);
  void end_shard(std::size_t shard, const ShardResult& result);
  /// ShardGradients::exchange().
  void exchange(std::uint32_t bucket) { gradients_.exchange(bucket); }
  /// Returns the sum of all shards' results, added up in order.
  [[nodiscard]] ShardResult end_batch();

 private:
  ShardedBatch batch_;
  Communicator& communicator_;
  ShardGradients gradients_;
  ShardStatistics statistics_;
  std::vector<ShardResult> results_;  // by shard
};

}  // namespace spillway
