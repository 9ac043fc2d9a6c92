#include "src/train/parts/shard_statistics.h"

#include <utility>

#include "src/train/parts/gather_shards.h"

namespace spillway {

using um::Bytes;

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
  gather_shards(communicator_, shards, count_ * sizeof(float),
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

}  // namespace spillway
