#include "src/train/data_parallel/rank_step.h"

#include <cstdint>
#include <numeric>
#include <utility>

#include "prefetch/block_sizes.h"
#include "src/ranks/collectives.h"
#include "src/train/data_parallel/shard_gradients.h"

namespace spillway {
namespace {

using um::Bytes;

// Returns the size of the running statistics in near memory.
Bytes statistics_of(const Step& step) {
  Bytes size;
  for (const StateBlock& block : step.state) {
    if (block.role != StateRole::kStatistics) continue;
    for (const prefetch::DataId id : block.ids) size += step.graph[id].size;
  }
  return size;
}

}  // namespace

Bytes ShardStatistics::near_memory(const ShardedBatch& batch, Bytes statistics) {
  return (1 + batch.tree.shards()) * statistics;
}

ShardStatistics::ShardStatistics(const ShardedBatch& batch, Communicator& communicator,
                                 std::vector<std::span<float>> blocks, um::Memory& memory)
    : batch_{batch}, communicator_{communicator}, blocks_{std::move(blocks)} {
  for (const std::span<float> block : blocks_) count_ += block.size();
  if (count_ == 0) return;
  block_ = um::Block{memory, near_memory(batch, Bytes{count_ * sizeof(float)})};
}

void ShardStatistics::begin_shard(std::size_t shard) {
  if (count_ == 0) return;
  if (shard == batch_.own.first) {
    store(before());
  } else {
    load(before());
  }
}

void ShardStatistics::end_shard(std::size_t shard) {
  if (count_ > 0) store(left_by(shard));
}

void ShardStatistics::end_batch() {
  if (count_ == 0) return;
  const std::size_t shards = batch_.tree.shards();
  all_gather_shards(communicator_, shards, count_ * sizeof(float),
                    std::as_writable_bytes(std::span{left_by(0).data(), shards * count_}));
  const std::span<float> sum = left_by(0);
  for (std::size_t shard = 1; shard < shards; ++shard) {
    communicator_.kernels().add(sum, left_by(shard));
  }
  communicator_.kernels().divide(sum, static_cast<float>(shards));
  load(sum);
}

std::span<float> ShardStatistics::copy(std::size_t place) const {
  return {reinterpret_cast<float*>(block_.data()) + place * count_, count_};
}

void ShardStatistics::store(std::span<float> to) const {
  for (const std::span<float> block : blocks_) {
    communicator_.kernels().copy(to.first(block.size()), block);
    to = to.subspan(block.size());
  }
  communicator_.finish();
}

void ShardStatistics::load(std::span<const float> from) const {
  for (const std::span<float> block : blocks_) {
    communicator_.kernels().copy(block, from.first(block.size()));
    from = from.subspan(block.size());
  }
  communicator_.finish();
}

Bytes RankStep::near_memory(const ShardedBatch& batch, const RankOptions& options,
                            const Step& last) {
  const GradientLayout gradients{last};
  return um::round_up(
             ShardGradients::near_memory(batch, options, gradients.size(), gradients.exchanges()),
             prefetch::kNearAlignment) +
         um::round_up(ShardStatistics::near_memory(batch, statistics_of(last)),
                      prefetch::kNearAlignment);
}

RankStep::RankStep(const ShardedBatch& batch, const RankOptions& options, GradientBuckets gradients,
                   std::vector<std::span<float>> statistics, um::Memory& memory)
    : batch_{batch},
      communicator_{options.communicator.get()},
      gradients_{batch, options, std::move(gradients), memory},
      statistics_{batch, options.between_near_memory(), std::move(statistics), memory},
      results_(batch.tree.shards()) {}

std::size_t RankStep::begin_batch(std::size_t counted) {
  const auto all = all_gather_values(communicator_, std::uint64_t{counted});
  return std::accumulate(all.begin(), all.end(), std::size_t{0});
}

void RankStep::begin_shard(std::size_t shard) {
  gradients_.begin_shard(shard);
  statistics_.begin_shard(shard);
}

void RankStep::end_shard(std::size_t shard, const ShardResult& result) {
  gradients_.end_shard(shard);
  statistics_.end_shard(shard);
  results_[shard] = result;
}

ShardResult RankStep::end_batch() {
  statistics_.end_batch();
  all_gather_shards(communicator_, results_.size(), sizeof(ShardResult),
                    std::as_writable_bytes(std::span{results_}));
  ShardResult all;
  for (const ShardResult& result : results_) {
    all.loss += result.loss;
    all.correct += result.correct;
  }
  return all;
}

}  // namespace spillway
