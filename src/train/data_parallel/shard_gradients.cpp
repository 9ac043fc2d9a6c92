#include "src/train/data_parallel/shard_gradients.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "prefetch/block_sizes.h"
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

std::size_t numbers_of(um::Bytes size) { return size.count() / sizeof(float); }

std::size_t index_of(const Step& step, prefetch::DataId id) {
  const auto found = std::ranges::lower_bound(step.gradients, id);
  um::expects(found != step.gradients.end() && *found == id, "a gradient of the step");
  return static_cast<std::size_t>(found - step.gradients.begin());
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

GradientLayout::GradientLayout(const Step& step) : offsets_(step.gradients.size()) {
  if (step.graph.exchanges.empty()) {
    for (const prefetch::DataId id : step.gradients) place(step, id);
  }
  for (const prefetch::GradientExchange& exchange : step.graph.exchanges) {
    if (!exchange.is_of_gradients()) continue;  // of what lies in their memory
    for (const prefetch::DataId id : exchange.blocks) place(step, id);
  }
  for (const prefetch::GradientExchange& exchange : step.graph.exchanges) {
    exchanges_.push_back(exchange_of(step, exchange));
  }
}

void GradientLayout::place(const Step& step, prefetch::DataId id) {
  offsets_[index_of(step, id)] = size_;
  size_ += um::round_up(step.graph[id].size, prefetch::kNearAlignment);
}

NumberSlice GradientLayout::numbers(const Step& step, prefetch::DataId id) const {
  const prefetch::DataId gradient = step.graph[id].lies_in.value_or(id);
  return {.first = numbers_of(offsets_[index_of(step, gradient)]),
          .count = numbers_of(step.graph[id].size)};
}

BucketExchange GradientLayout::exchange_of(const Step& step,
                                           const prefetch::GradientExchange& exchange) const {
  BucketExchange result{.collective = exchange.collective};
  for (const prefetch::DataId id : exchange.divided) {
    result.divided.push_back(numbers(step, id));
  }
  const std::size_t whole = exchange.blocks.size() - exchange.divided.size();
  if (whole == 0) return result;
  const NumberSlice first = numbers(step, exchange.blocks.front());
  const NumberSlice last = numbers(step, exchange.blocks[whole - 1]);
  const std::size_t alignment = numbers_of(prefetch::kNearAlignment);
  const std::size_t end = (last.first + last.count + alignment - 1) / alignment * alignment;
  result.whole = {.first = first.first, .count = end - first.first};
  return result;
}

GradientSums::GradientSums(const Step& step, um::Memory& memory) : layout_{step} {
  if (layout_.size() > um::Bytes{}) block_ = um::Block{memory, layout_.size()};
}

GradientBuckets GradientSums::buckets() const {
  const std::span<float> numbers{reinterpret_cast<float*>(block_.data()),
                                 block_.size().count() / sizeof(float)};
  return {.numbers = numbers, .exchanges = layout_.exchanges()};
}

void GradientSums::place(const Step& step, std::span<std::byte*> addresses) const {
  um::expects(step.gradients.empty() || step.gradients.size() == layout_.offsets().size(),
              "the sub-steps of a batch have the same gradients");
  for (std::size_t i = 0; i < step.gradients.size(); ++i) {
    addresses[static_cast<std::size_t>(step.gradients[i])] =
        block_.data() + layout_.offsets()[i].count();
  }
  for (std::size_t i = 0; i < step.graph.data.size(); ++i) {
    const std::optional<prefetch::DataId> gradient = step.graph.data[i].lies_in;
    if (gradient) addresses[i] = addresses[static_cast<std::size_t>(*gradient)];
  }
}

}  // namespace spillway
