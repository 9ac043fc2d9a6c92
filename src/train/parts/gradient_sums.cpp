#include "src/train/parts/gradient_sums.h"

#include <optional>

#include "um/error.h"

namespace spillway {

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
