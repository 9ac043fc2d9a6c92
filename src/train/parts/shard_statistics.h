#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "src/ranks/communicator.h"
#include "src/step/shard_steps.h"
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

}  // namespace spillway
