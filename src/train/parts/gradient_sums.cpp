#include "src/train/parts/gradient_sums.h"

#include <algorithm>
#include <optional>

#include "prefetch/block_sizes.h"
#include "um/error.h"

namespace spillway {

namespace {

std::size_t numbers_of(um::Bytes size) { return size.count() / sizeof(float); }

}  // namespace

GradientSums::GradientSums(const Step& step, um::Memory& memory) : offsets_(step.gradients.size()) {
  um::Bytes size;
  if (step.graph.exchanges.empty()) {
    for (const prefetch::DataId id : step.gradients) size += place_block(step, id, size);
  }
  for (const prefetch::GradientExchange& exchange : step.graph.exchanges) {
    if (!exchange.is_of_gradients()) continue;
    for (const prefetch::DataId id : exchange.blocks) size += place_block(step, id, size);
  }
  for (const prefetch::GradientExchange& exchange : step.graph.exchanges) {
    exchanges_.push_back(exchange_of(step, exchange));
  }
  if (size > um::Bytes{}) block_ = um::Block{memory, size};
}

// Returns what it takes.
um::Bytes GradientSums::place_block(const Step& step, prefetch::DataId id, um::Bytes begin) {
  offsets_[index_of(step, id)] = begin.count();
  return um::round_up(step.graph[id].size, prefetch::kNearAlignment);
}

std::size_t GradientSums::index_of(const Step& step, prefetch::DataId id) {
  const auto found = std::ranges::lower_bound(step.gradients, id);
  um::expects(found != step.gradients.end() && *found == id, "a gradient of the step");
  return static_cast<std::size_t>(found - step.gradients.begin());
}

NumberSlice GradientSums::numbers(const Step& step, prefetch::DataId id) const {
  const prefetch::DataId gradient = step.graph[id].lies_in.value_or(id);
  return {.first = offsets_[index_of(step, gradient)] / sizeof(float),
          .count = numbers_of(step.graph[id].size)};
}

BucketExchange GradientSums::exchange_of(const Step& step,
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

GradientBuckets GradientSums::buckets() const {
  const std::span<float> numbers{reinterpret_cast<float*>(block_.data()),
                                 block_.size().count() / sizeof(float)};
  return {.numbers = numbers, .exchanges = exchanges_};
}

void GradientSums::place(const Step& step, std::span<std::byte*> addresses) const {
  um::expects(step.gradients.empty() || step.gradients.size() == offsets_.size(),
              "the sub-steps of a batch have the same gradients");
  for (std::size_t i = 0; i < step.gradients.size(); ++i) {
    addresses[static_cast<std::size_t>(step.gradients[i])] = block_.data() + offsets_[i];
  }
  for (std::size_t i = 0; i < step.graph.data.size(); ++i) {
    const std::optional<prefetch::DataId> gradient = step.graph.data[i].lies_in;
    if (gradient) addresses[i] = addresses[static_cast<std::size_t>(*gradient)];
  }
}

}  // namespace spillway
