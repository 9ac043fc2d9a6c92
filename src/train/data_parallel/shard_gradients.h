#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/program/shard_steps.h"
#include "src/program/step.h"
#include "src/ranks/tree_reduction.h"
#include "src/train/data_parallel/rank_options.h"
#include "um/bytes.h"
#include "um/memory.h"

namespace spillway {

/// One of TaskGraph::exchanges: of gradients, or of the parameters that lie in their memory.
struct BucketExchange {
  prefetch::Collective collective = prefetch::Collective::kAllReduce;
  NumberSlice whole;                 ///< blocks that are summed for all ranks
  std::vector<NumberSlice> divided;  ///< blocks that each rank has a slice of
};

/// The gradients that the sub-steps of a batch add up: floats, bucket after bucket.
struct GradientBuckets {
  std::span<float> numbers;               ///< of all
  std::vector<BucketExchange> exchanges;  ///< by TaskGraph::exchanges
};

/// Adds up the gradients of one rank's shards in the order of the ShardTree, and with those of
/// other ranks. The sub-steps write and add to the node that is being made. Earlier nodes wait in
/// memory of their own until their sums are due.
///
/// Thread safety: exchange() on one thread while the last shard's step is under way; else none.
class ShardGradients {
 public:
  /// Returns the near memory that it takes for `gradients` in `buckets`.
  [[nodiscard]] static um::Bytes near_memory(const ShardedBatch& batch, const RankOptions& options,
                                             um::Bytes gradients,
                                             std::span<const BucketExchange> buckets);

  /// Keeps references to the communicator of `options` and to the numbers of `gradients`. Throws:
  /// um::OutOfMemory.
  ShardGradients(const ShardedBatch& batch, const RankOptions& options, GradientBuckets gradients,
                 um::Memory& memory);

  /// To be called before and after the step of each shard of this rank, in order.
  void begin_shard(std::size_t shard);
  void end_shard(std::size_t shard);
  /// Makes one of TaskGraph::exchanges of the last shard's step: the gradients of a bucket,
  /// complete on this rank, become the sums over all shards, those that are divided in this rank's
  /// slice; or the parameters that lie in their memory are gathered. Throws: what Communicator
  /// throws.
  void exchange(std::uint32_t exchange);

 private:
  // Turns this rank's sums of these numbers into those of all shards, in all of them or in its
  // slice.
  enum class Sum { kWhole, kSlice };
  void add_up(const NumberSlice& numbers, Sum sum);
  [[nodiscard]] std::span<float> waiting(std::size_t place) const;

  ShardedBatch batch_;
  RankReduction rule_;
  Communicator& communicator_;
  TreeReduction reduction_;
  GradientBuckets gradients_;
  um::Block block_;  // of sums that wait, then the reduction's scratch
  std::size_t waits_ = 0;
};

/// Places the gradients that the sub-steps of a batch add up (Step::gradients) in one block of
/// memory: bucket after bucket where the step exchanges them, each aligned.
class GradientLayout {
 public:
  explicit GradientLayout(const Step& step);

  /// The size of all of them, padding included.
  [[nodiscard]] um::Bytes size() const { return size_; }
  /// Offsets by Step::gradients.
  [[nodiscard]] const std::vector<um::Bytes>& offsets() const { return offsets_; }
  /// The numbers that each of TaskGraph::exchanges exchanges.
  [[nodiscard]] const std::vector<BucketExchange>& exchanges() const { return exchanges_; }

 private:
  void place(const Step& step, prefetch::DataId id);
  [[nodiscard]] NumberSlice numbers(const Step& step, prefetch::DataId id) const;
  [[nodiscard]] BucketExchange exchange_of(const Step& step,
                                           const prefetch::GradientExchange& exchange) const;

  um::Bytes size_;
  std::vector<um::Bytes> offsets_;
  std::vector<BucketExchange> exchanges_;
};

/// The gradients of parameters that the sub-steps of a batch add up, in one block of near memory as
/// GradientLayout places them. The memory must outlive it.
class GradientSums {
 public:
  /// Allocates Step::gradients of `step`, one of the sub-steps; nothing for another step. Throws:
  /// um::OutOfMemory.
  GradientSums(const Step& step, um::Memory& memory);

  /// Puts the address of each of them into `addresses`, by DataId. Requires: `step` is a sub-step
  /// of the same batch, or has none.
  void place(const Step& step, std::span<std::byte*> addresses) const;

  /// All of them as numbers, with zeros between. Requires: `step` exchanges them.
  [[nodiscard]] GradientBuckets buckets() const;

 private:
  GradientLayout layout_;
  um::Block block_;
};

}  // namespace spillway
