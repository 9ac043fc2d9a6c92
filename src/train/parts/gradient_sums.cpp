#include "src/train/parts/gradient_sums.h"

#include <algorithm>

#include "prefetch/block_sizes.h"
#include "um/error.h"

namespace spillway {

namespace {

// Groups of gradients that are to lie side by side.
std::vector<std::vector<prefetch::DataId>> grouped(const Step& step) {
  if (step.graph.exchanges.empty()) return {step.gradients};
  std::vector<std::vector<prefetch::DataId>> groups;
  for (const auto& exchange : step.graph.exchanges) groups.push_back(exchange.gradients);
  return groups;
}

}  // namespace

GradientSums::GradientSums(const Step& step, um::Memory& memory) : offsets_(step.gradients.size()) {
  um::Bytes size;
  for (const auto& group : grouped(step)) {
    const std::size_t first = size.count() / sizeof(float);
    for (const prefetch::DataId id : group) {
      const auto place = std::ranges::lower_bound(step.gradients, id) - step.gradients.begin();
      offsets_[static_cast<std::size_t>(place)] = size.count();
      size += um::round_up(step.graph[id].size, prefetch::kNearAlignment);
    }
    buckets_.push_back({.first = first, .count = size.count() / sizeof(float) - first});
  }
  if (size > um::Bytes{}) block_ = um::Block{memory, size};
}

GradientBuckets GradientSums::buckets() const {
  const std::span<float> numbers{reinterpret_cast<float*>(block_.data()),
                                 block_.size().count() / sizeof(float)};
  return {.numbers = numbers, .buckets = buckets_};
}

void GradientSums::place(const Step& step, std::span<std::byte*> addresses) const {
  um::expects(step.gradients.empty() || step.gradients.size() == offsets_.size(),
              "the sub-steps of a batch have the same gradients");
  for (std::size_t i = 0; i < step.gradients.size(); ++i) {
    addresses[static_cast<std::size_t>(step.gradients[i])] = block_.data() + offsets_[i];
  }
}

}  // namespace spillway
