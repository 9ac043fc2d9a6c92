#include "src/train/parts/gradient_layout.h"

#include <algorithm>

#include "prefetch/block_sizes.h"
#include "um/error.h"

namespace spillway {
namespace {

std::size_t numbers_of(um::Bytes size) { return size.count() / sizeof(float); }

std::size_t index_of(const Step& step, prefetch::DataId id) {
  const auto found = std::ranges::lower_bound(step.gradients, id);
  um::expects(found != step.gradients.end() && *found == id, "a gradient of the step");
  return static_cast<std::size_t>(found - step.gradients.begin());
}

}  // namespace

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

}  // namespace spillway
