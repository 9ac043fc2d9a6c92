#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/ranks/communicator.h"
#include "src/step/shard_steps.h"
#include "src/train/parts/rank_training.h"
#include "src/train/parts/shard_gradients.h"
#include "um/bytes.h"
#include "um/memory.h"

namespace spillway {

/// Running statistics of batch norms in a batch of shards, each of which is normalised by its own:
/// every shard begins with those that the batch began with, and the batch leaves the mean of what
/// its shards left, added up in their order. So they move once a batch, on all ranks alike.
///
/// Thread safety: none.
class ShardStatistics {
 public:
  /// Near memory that it takes for so many bytes of statistics.
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
  // What the batch began with, or what a shard left.
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

/// What one shard's step gave.
struct ShardResult {
  float loss = 0;  ///< its part of the mean over the batch
  float correct = 0;
};

/// What ranks tell each other before a step.
struct RankNews {
  std::size_t counted = 0;    ///< labels that count, of its samples
  bool wants_stop = false;    ///< this step should be the last
  bool has_warnings = false;  ///< RankWarnings::are_there()
};

/// One rank's part in the steps of a data-parallel training, shard by shard: what it and the others
/// tell each other.
///
/// Thread safety: as ShardGradients.
class RankStep {
 public:
  /// Near memory that the shards of a rank take beside the blocks of their steps, of which `last`
  /// is the last one.
  [[nodiscard]] static um::Bytes near_memory(const ShardedBatch& batch, const RankOptions& options,
                                             const Step& last);

  /// All but the batch outlive it. `statistics` are the running statistics of batch norms. Throws:
  /// um::OutOfMemory.
  RankStep(const ShardedBatch& batch, const RankOptions& options, GradientBuckets gradients,
           std::vector<std::span<float>> statistics, um::Memory& memory);

  [[nodiscard]] const ShardedBatch& batch() const { return batch_; }

  /// Begins a batch. Takes what is so of this rank, and returns what is of all of them together.
  [[nodiscard]] RankNews begin_batch(const RankNews& own);
  /// Whether any rank wants to stop, as this one does or does not. All ranks call it.
  [[nodiscard]] bool any_stops(bool own);
  /// To be called before and after the step of each shard of this rank, in order.
  void begin_shard(std::size_t shard);
  void end_shard(std::size_t shard, const ShardResult& result);
  /// ShardGradients::exchange().
  void exchange(std::uint32_t bucket) { gradients_.exchange(bucket); }
  /// Returns what all shards gave, added up in their order.
  [[nodiscard]] ShardResult end_batch();

 private:
  ShardedBatch batch_;
  Communicator& communicator_;
  ShardGradients gradients_;
  ShardStatistics statistics_;
  std::vector<ShardResult> results_;  // by shard
};

}  // namespace spillway
