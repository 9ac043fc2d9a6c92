#include "src/cuda/kernels/kernels.h"
#include "src/cuda/kernels/launch.cuh"
#include "src/cuda/layout/parameter_layout.h"

namespace spillway::cuda {
namespace {

// Over the whole part: what is padding in both stays zero. `sum` may be `old_sum`.
__global__ void accumulate_gradients(const float* old_sum, const float* part, float* sum,
                                     std::size_t packs) {
  for (std::size_t i = first_item(); i < packs; i += item_stride()) {
    Pack<float> total = load(old_sum, i);
    const Pack<float> more = load(part, i);
#pragma unroll
    for (int l = 0; l < Pack<float>::kLanes; ++l) total.lanes[l] += more.lanes[l];
    store(sum, i, total);
  }
}

}  // namespace

// Gradients of parameters are floats in every precision, a multiple of 8 of them.
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const AccumulateGradients& op) {
  const ParameterLayout layout{machine.precision, op.parameters};
  const std::size_t packs = layout.cuts().range(op.part).count() / Pack<float>::kLanes;
  return kernel_of(op, [stream = machine.stream, packs](const auto& operands) {
    launch(stream, packs, accumulate_gradients, tensor<float>(operands.in.sum),
           tensor<float>(operands.in.dparameters), tensor<float>(operands.out.sum), packs);
  });
}

}  // namespace spillway::cuda
