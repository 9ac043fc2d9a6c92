#include "src/train/data_parallel/exchanged_gradients.h"

#include <algorithm>

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

// The library of the ranks needs none where it adds up as it likes.
Bytes reduction_scratch(const MicroBatches& batches, const RankOptions& options,
                        const GradientLayout& layout) {
  if (options.reduction == RankReduction::kFastest || layout.exchanges().empty()) return {};
  const TreeReduction reduction{options.between_near_memory(), batches.count()};
  return reduction.scratch_size(largest(layout.exchanges()));
}

}  // namespace

Bytes ExchangedGradients::scratch_memory(const MicroBatches& batches, const RankOptions& options,
                                         const Step& step) {
  return um::round_up(reduction_scratch(batches, options, GradientLayout{step}),
                      prefetch::kNearAlignment);
}

ExchangedGradients::ExchangedGradients(const MicroBatches& batches, const RankOptions& options,
                                       const Step& step, um::Memory& memory)
    : layout_{step},
      waits_{batches.waiting_sums()},
      rule_{options.reduction},
      communicator_{options.between_near_memory()},
      reduction_{communicator_, batches.count()} {
  if (layout_.size() == Bytes{}) return;
  block_ = um::Block{memory,
                     (waits_ + 1) * layout_.size() + reduction_scratch(batches, options, layout_)};
}

void ExchangedGradients::place(const Step& step, std::span<std::byte*> addresses) const {
  const auto put = [&](prefetch::DataId id, std::size_t index, prefetch::DataId gradient) {
    std::byte* const begin = block_.data() + index * layout_.size().count();
    addresses[static_cast<std::size_t>(id)] = begin + layout_.offset(step, gradient).count();
  };
  for (const prefetch::DataId id : step.gradients) put(id, waits_, id);
  for (const WaitingSum& waiting : step.waiting) put(waiting.block, waiting.node, waiting.sum);
}

std::span<float> ExchangedGradients::node(std::size_t index) const {
  const std::size_t count = numbers_of(layout_.size());
  return {reinterpret_cast<float*>(block_.data()) + index * count, count};
}

void ExchangedGradients::exchange(std::uint32_t exchange) {
  const BucketExchange& bucket = layout_.exchanges().at(exchange);
  if (bucket.collective == prefetch::Collective::kAllGather) {
    for (const NumberSlice& block : bucket.divided) {
      reduction_.all_gather(node(waits_).subspan(block.first, block.count));
    }
  } else {
    if (bucket.whole.count > 0) add_up(bucket.whole, Sum::kWhole);
    for (const NumberSlice& block : bucket.divided) add_up(block, Sum::kSlice);
  }
  communicator_.finish();
}

void ExchangedGradients::add_up(const NumberSlice& numbers, Sum wanted) {
  const auto part = [&](std::span<float> all) { return all.subspan(numbers.first, numbers.count); };
  std::vector<std::span<const float>> nodes;
  for (std::size_t i = 0; i <= waits_; ++i) nodes.emplace_back(part(node(i)));
  const std::span<float> sum = part(node(waits_));
  const std::span<float> total = part(node(0));
  const NumberSlice slice = wanted == Sum::kSlice ? reduction_.own_slice(numbers.count)
                                                  : NumberSlice{.first = 0, .count = numbers.count};
  const auto scratch = [&] {
    return block_.bytes().subspan(((waits_ + 1) * layout_.size()).count());
  };
  if (rule_ == RankReduction::kFastest) {
    reduction_.fast_all_reduce(nodes, total);
  } else if (wanted == Sum::kSlice) {
    reduction_.reduce_scatter(nodes, numbers.count, total.subspan(slice.first, slice.count),
                              scratch());
  } else {
    reduction_.all_reduce(nodes, total, scratch());
  }
  if (waits_ == 0) return;
  communicator_.kernels().copy(sum.subspan(slice.first, slice.count),
                               total.subspan(slice.first, slice.count));
}

GradientLayout::GradientLayout(const Step& step) : offsets_(step.gradients.size()) {
  for (const prefetch::GradientExchange& exchange : step.graph.exchanges) {
    if (!exchange.is_of_gradients()) continue;  // of what lies in their memory
    for (const prefetch::DataId id : exchange.blocks) place(step, id);
  }
  for (const prefetch::GradientExchange& exchange : step.graph.exchanges) {
    exchanges_.push_back(exchange_of(step, exchange));
  }
}

Bytes GradientLayout::offset(const Step& step, prefetch::DataId gradient) const {
  return offsets_[index_of(step, gradient)];
}

void GradientLayout::place(const Step& step, prefetch::DataId id) {
  offsets_[index_of(step, id)] = size_;
  size_ += um::round_up(step.graph[id].size, prefetch::kNearAlignment);
}

NumberSlice GradientLayout::numbers(const Step& step, prefetch::DataId id) const {
  const prefetch::DataId gradient = step.graph[id].lies_in.value_or(id);
  return {.first = numbers_of(offset(step, gradient)), .count = numbers_of(step.graph[id].size)};
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

}  // namespace spillway
