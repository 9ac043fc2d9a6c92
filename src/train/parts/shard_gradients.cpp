#include "src/train/parts/shard_gradients.h"

#include <algorithm>
#include <utility>

#include "um/error.h"

namespace spillway {
namespace {

using um::Bytes;

// The most numbers that are added up at once.
std::size_t largest(std::span<const BucketExchange> buckets) {
  std::size_t count = 0;
  for (const BucketExchange& bucket : buckets) {
    count = std::max(count, bucket.whole.count);
    for (const NumberSlice& block : bucket.divided) count = std::max(count, block.count);
  }
  return count;
}

}  // namespace

Bytes ShardGradients::near_memory(const ShardedBatch& batch, const RankOptions& options,
                                  Bytes gradients, std::span<const BucketExchange> buckets) {
  const Bytes waiting = batch.waiting_sums() * gradients;
  if (options.reduction == RankReduction::kFastest) return waiting;
  const TreeReduction reduction{options.between_near_memory(), batch.tree.shards()};
  return waiting + reduction.scratch_size(largest(buckets));
}

ShardGradients::ShardGradients(const ShardedBatch& batch, const RankOptions& options,
                               GradientBuckets gradients, um::Memory& memory)
    : batch_{batch},
      rule_{options.reduction},
      communicator_{options.between_near_memory()},
      reduction_{communicator_, batch.tree.shards()},
      gradients_{std::move(gradients)} {
  const Bytes size =
      near_memory(batch, options, Bytes{gradients_.numbers.size_bytes()}, gradients_.exchanges);
  if (size > Bytes{}) block_ = um::Block{memory, size};
}

void ShardGradients::begin_shard(std::size_t shard) {
  if (shard == batch_.own.first) {
    waits_ = 0;
    return;
  }
  if (batch_.begins_node(shard)) {
    communicator_.kernels().copy(waiting(waits_++), gradients_.numbers);
    communicator_.finish();
  }
}

void ShardGradients::end_shard(std::size_t shard) {
  if (shard + 1 == batch_.own.end) return;  // exchange() has done it
  for (std::size_t i = 0; i < batch_.sums_due_after(shard); ++i) {
    communicator_.kernels().add(gradients_.numbers, waiting(--waits_));
  }
  communicator_.finish();
}

void ShardGradients::exchange(std::uint32_t exchange) {
  const BucketExchange& bucket = gradients_.exchanges.at(exchange);
  if (bucket.collective == prefetch::Collective::kAllGather) {
    for (const NumberSlice& block : bucket.divided) {
      reduction_.all_gather(gradients_.numbers.subspan(block.first, block.count));
    }
  } else {
    if (bucket.whole.count > 0) add_up(bucket.whole, Sum::kWhole);
    for (const NumberSlice& block : bucket.divided) add_up(block, Sum::kSlice);
  }
  communicator_.finish();
}

void ShardGradients::add_up(const NumberSlice& numbers, Sum wanted) {
  const auto part = [&](std::span<float> all) { return all.subspan(numbers.first, numbers.count); };
  const std::span<float> sum = part(gradients_.numbers);
  std::size_t waits = waits_;
  for (std::size_t i = 0; i < batch_.sums_due_after(batch_.own.end - 1); ++i) {
    communicator_.kernels().add(sum, part(waiting(--waits)));
  }
  std::vector<std::span<const float>> nodes;
  for (std::size_t i = 0; i < waits; ++i) nodes.emplace_back(part(waiting(i)));
  nodes.emplace_back(sum);
  const std::span<float> total = waits > 0 ? part(waiting(0)) : sum;
  const NumberSlice slice = wanted == Sum::kSlice ? reduction_.own_slice(numbers.count)
                                                  : NumberSlice{.first = 0, .count = numbers.count};
  const std::size_t waiting_numbers = gradients_.numbers.size() * batch_.waiting_sums();
  const auto scratch = [&] { return block_.bytes().subspan(waiting_numbers * sizeof(float)); };
  if (rule_ == RankReduction::kFastest) {
    reduction_.fast_all_reduce(nodes, total);
  } else if (wanted == Sum::kSlice) {
    reduction_.reduce_scatter(nodes, numbers.count, total.subspan(slice.first, slice.count),
                              scratch());
  } else {
    reduction_.all_reduce(nodes, total, scratch());
  }
  if (waits == 0) return;
  communicator_.kernels().copy(sum.subspan(slice.first, slice.count),
                               total.subspan(slice.first, slice.count));
}

std::span<float> ShardGradients::waiting(std::size_t place) const {
  const std::size_t count = gradients_.numbers.size();
  um::expects(place < batch_.waiting_sums(), "room for a sum that waits");
  return {reinterpret_cast<float*>(block_.data()) + place * count, count};
}

}  // namespace spillway
