#include <algorithm>

#include "src/host/kernels/kernels.h"
#include "src/ops/dropout_mask.h"

namespace spillway::host {
namespace {

// Forward and backward are the same: x, or dy, times the mask.
class DropoutKernel final : public HostKernel {
 public:
  DropoutKernel(const Machine& machine, const DropoutForward& op)
      : HostKernel{machine, operand_count(op)},
        layout_{machine.layout},
        shape_{op.x},
        probability_{op.probability},
        stream_{op.stream} {}

 private:
  static constexpr std::size_t kWords = DropoutMask::kGroup;

  void compute(const KernelArguments& arguments) override {
    const auto operands = operands_of<DropoutForward>(arguments.operands);
    const DropoutMask mask = dropout_mask(shape_.image, probability_, stream_, *arguments.context);
    const float* const x = floats(operands.in.x);
    float* const y = floats(operands.out.y);
    const nets::Shape image = layout_.padded(shape_.image);
    const std::size_t pixels = image.height * image.width;
    const std::size_t groups = (image.channels + kWords - 1) / kWords;
    const std::size_t stride = layout_.lanes(shape_.image.channels) == 1 ? pixels : 1;
#pragma omp parallel for schedule(static)
    for (std::size_t i = 0; i < shape_.batch * groups * pixels; ++i) {
      const std::size_t n = i / pixels / groups;
      const std::size_t first = i / pixels % groups * kWords;  // channel
      const std::size_t pixel = i % pixels;
      const std::size_t begin =
          n * image.elements() +
          layout_.index(shape_.image, first, pixel / image.width, pixel % image.width);
      const PhiloxCounter words = mask.words(n * pixels + pixel, first / kWords);
      const std::size_t count = std::min(kWords, image.channels - first);
      for (std::size_t c = 0; c < count; ++c) {
        const std::size_t at = begin + c * stride;  // four channels never straddle a block
        y[at] = mask.apply(words[c], x[at]);
      }
    }
  }

  Layout layout_;
  TensorShape shape_;
  float probability_;
  std::uint32_t stream_;
};

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const DropoutForward& op) {
  return std::make_unique<DropoutKernel>(machine, op);
}
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const DropoutBackward& op) {
  return make_kernel(machine, forward_of(op));
}

}  // namespace spillway::host
