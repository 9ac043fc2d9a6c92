#include "src/cuda/kernels/kernels.h"
#include "src/cuda/kernels/launch.cuh"
#include "src/cuda/layout/step_numbers.h"
#include "src/ops/dropout_mask.h"

namespace spillway::cuda {
namespace {

// Forward and backward are the same: x times the mask. Padding, which is zero, stays so, whatever
// is drawn for it. y may be x.
template <class T>
__global__ void dropout(const T* x, T* y, const DropoutMask* step_mask,
                        std::uint32_t packs_of_pixel, std::size_t packs) {
  const DropoutMask mask = *step_mask;
  constexpr int kGroups = Pack<T>::kLanes / DropoutMask::kGroup;  // 2 of bfloat16, 1 of floats
  for (std::size_t i = first_item(); i < packs; i += item_stride()) {
    const std::size_t pixel = i / packs_of_pixel;
    const std::size_t group = i % packs_of_pixel * kGroups;
    Pack<T> pack = load(x, i);
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      const PhiloxCounter words = mask.words(pixel, group + g);
#pragma unroll
      for (int c = 0; c < static_cast<int>(DropoutMask::kGroup); ++c) {
        float& lane = pack.lanes[g * static_cast<int>(DropoutMask::kGroup) + c];
        lane = mask.apply(words[c], lane);
      }
    }
    store(y, i, pack);
  }
}

}  // namespace

// Forward and backward are the same: x, or dy, times the mask.
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const DropoutForward& op) {
  auto mask = machine.numbers->add([op](const StepContext& context) {
    return dropout_mask(op.x.image, op.probability, op.stream, context);
  });
  auto apply = [machine, op, mask = std::move(mask)](const auto& operands) {
    with_element(machine.precision, [&](auto element) {
      using T = decltype(element);
      const std::size_t of_pixel = Layout::padded(op.x.image.channels) / Pack<T>::kLanes;
      const std::size_t packs = pack_count<T>(op.x);
      launch(machine.stream, packs, dropout<T>, tensor<T>(operands.in.x), tensor<T>(operands.out.y),
             mask.get(), static_cast<std::uint32_t>(of_pixel), packs);
    });
  };
  return kernel_of(op, std::move(apply));
}
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const DropoutBackward& op) {
  return make_kernel(machine, forward_of(op));
}

}  // namespace spillway::cuda
