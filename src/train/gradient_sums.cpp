#include "src/train/gradient_sums.h"

#include "prefetch/block_sizes.h"
#include "um/error.h"

namespace spillway {

GradientSums::GradientSums(const Step& step, um::Memory& memory) {
  um::Bytes size;
  for (const prefetch::DataId id : step.gradients) {
    offsets_.push_back(size.count());
    size += um::round_up(step.graph[id].size, prefetch::kNearAlignment);
  }
  if (size > um::Bytes{}) block_ = um::Block{memory, size};
}

void GradientSums::place(const Step& step, std::span<std::byte*> addresses) const {
  um::expects(step.gradients.empty() || step.gradients.size() == offsets_.size(),
              "the sub-steps of a batch have the same gradients");
  for (std::size_t i = 0; i < step.gradients.size(); ++i) {
    addresses[static_cast<std::size_t>(step.gradients[i])] = block_.data() + offsets_[i];
  }
}

}  // namespace spillway
