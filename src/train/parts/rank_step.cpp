#include "src/train/parts/rank_step.h"

#include <utility>

#include "prefetch/block_sizes.h"
#include "src/ranks/agreement.h"
#include "src/train/parts/gather_shards.h"
#include "src/train/parts/gradient_layout.h"

namespace spillway {
namespace {

using um::Bytes;

// Of the state of this role in near memory.
Bytes statistics_of(const Step& step) {
  Bytes size;
  for (const StateBlock& block : step.state) {
    if (block.role != StateRole::kStatistics) continue;
    for (const prefetch::DataId id : block.ids) size += step.graph[id].size;
  }
  return size;
}

}  // namespace

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
      communicator_{*options.communicator},
      gradients_{batch, options, std::move(gradients), memory},
      statistics_{batch, options.between_near_memory(), std::move(statistics), memory},
      results_(batch.tree.shards()) {}

RankNews RankStep::begin_batch(const RankNews& own) {
  RankNews all;
  for (const RankNews& of_rank : gather_values(communicator_, own)) {
    all.counted += of_rank.counted;
    all.wants_stop = all.wants_stop || of_rank.wants_stop;
    all.has_warnings = all.has_warnings || of_rank.has_warnings;
  }
  return all;
}

bool RankStep::any_stops(bool own) { return any_rank(communicator_, own); }

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
  gather_shards(communicator_, results_.size(), sizeof(ShardResult),
                std::as_writable_bytes(std::span{results_}));
  ShardResult all;
  for (const ShardResult& result : results_) {
    all.loss += result.loss;
    all.correct += result.correct;
  }
  return all;
}

}  // namespace spillway
