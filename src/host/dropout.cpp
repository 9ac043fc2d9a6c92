#include <algorithm>
#include <cmath>

#include "src/host/kernels.h"
#include "src/host/philox.h"

namespace spillway::host {
namespace {

// Forward and backward are the same: x times the mask. One call of philox serves four channels of
// a pixel, so that a mask does not depend on the layout; its counter is the place of the four in
// (N, H, W, C / 4), the step and the stream.
class DropoutKernel final : public HostKernel {
 public:
  DropoutKernel(const Machine& machine, const TensorShape& x, float probability,
                std::uint32_t stream)
      : HostKernel{machine, 2},
        layout_{machine.layout},
        shape_{x},
        threshold_{static_cast<std::uint64_t>(std::ceil(std::ldexp(probability, 32)))},
        scale_{probability < 1.F ? 1.F / (1.F - probability) : 0.F},
        stream_{stream} {}

 private:
  static constexpr std::size_t kWords = 4;

  void compute(const KernelArguments& arguments) override {
    const float* const x = floats(arguments, 0);
    float* const y = floats(arguments, 1);
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
      const PhiloxCounter words = draw(n * pixels + pixel, first / kWords, *arguments.context);
      const std::size_t count = std::min(kWords, image.channels - first);
      for (std::size_t c = 0; c < count; ++c) {
        const std::size_t at = begin + c * stride;  // four channels never straddle a block
        y[at] = words[c] < threshold_ ? 0.F : x[at] * scale_;
      }
    }
  }

  [[nodiscard]] PhiloxCounter draw(std::size_t pixel, std::size_t group,
                                   const StepContext& context) const {
    const std::size_t logical_groups = (shape_.image.channels + kWords - 1) / kWords;
    const std::uint64_t place = pixel * logical_groups + group;
    const auto low = [](std::uint64_t value) { return static_cast<std::uint32_t>(value); };
    const auto high = [](std::uint64_t value) { return static_cast<std::uint32_t>(value >> 32U); };
    // Places beyond 2^32 and steps beyond 2^32 share a word: neither occurs.
    return philox({low(place), high(place) ^ high(context.step), low(context.step), stream_},
                  {low(context.seed), high(context.seed)});
  }

  Layout layout_;
  TensorShape shape_;
  std::uint64_t threshold_;  // words below it drop their element
  float scale_;
  std::uint32_t stream_;
};

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const DropoutForward& op) {
  return std::make_unique<DropoutKernel>(machine, op.x, op.probability, op.stream);
}
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const DropoutBackward& op) {
  return std::make_unique<DropoutKernel>(machine, op.x, op.probability, op.stream);
}

}  // namespace spillway::host
