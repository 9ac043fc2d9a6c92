#include <algorithm>

#include "src/host/kernels/kernels.h"
#include "src/ops/dropout_mask.h"

namespace spillway::host {

// Forward and backward are the same: x, or dy, times the mask.
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const DropoutForward& op) {
  const auto apply = [layout = machine.layout, op](auto elements, const auto& operands,
                                                   const auto& arguments) {
    constexpr std::size_t kWords = DropoutMask::kGroup;
    const DropoutMask mask =
        dropout_mask(op.x.image, op.probability, op.stream, *arguments.context);
    const auto* const x = elements(operands.in.x);
    auto* const y = elements(operands.out.y);
    const nets::Shape image = layout.padded(op.x.image);
    const std::size_t pixels = image.height * image.width;
    const std::size_t groups = (image.channels + kWords - 1) / kWords;
    const std::size_t stride = layout.lanes(op.x.image) == 1 ? pixels : 1;
#pragma omp parallel for schedule(static)
    for (std::size_t i = 0; i < op.x.batch * groups * pixels; ++i) {
      const std::size_t n = i / pixels / groups;
      const std::size_t first = i / pixels % groups * kWords;  // channel
      const std::size_t pixel = i % pixels;
      const std::size_t begin =
          n * image.elements() +
          layout.index(op.x.image, first, pixel / image.width, pixel % image.width);
      const PhiloxCounter words = mask.words(n * pixels + pixel, first / kWords);
      const std::size_t count = std::min(kWords, image.channels - first);
      for (std::size_t c = 0; c < count; ++c) {
        const std::size_t at = begin + c * stride;  // four channels never straddle a block
        y[at] = mask.apply(words[c], x[at]);
      }
    }
  };
  return element_kernel_of(machine, op, apply);
}
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const DropoutBackward& op) {
  return make_kernel(machine, forward_of(op));
}

}  // namespace spillway::host
