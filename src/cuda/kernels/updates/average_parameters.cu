#include "src/cuda/kernels/kernels.h"
#include "src/cuda/kernels/launch.cuh"
#include "src/cuda/layout/parameter_layout.h"

namespace spillway::cuda {
namespace {

// Rounds after each operation, as the host does. Over the whole part: what is padding in both stays
// zero. `average` may be `old_average`.
__global__ void average_parameters(const float* w, const float* old_average, float* average,
                                   float part, std::size_t packs) {
  for (std::size_t i = first_item(); i < packs; i += item_stride()) {
    const Pack<float> now = load(w, i);
    Pack<float> mean = load(old_average, i);
#pragma unroll
    for (int l = 0; l < Pack<float>::kLanes; ++l) {
      const float more = __fmul_rn(part, __fsub_rn(now.lanes[l], mean.lanes[l]));
      mean.lanes[l] = __fadd_rn(mean.lanes[l], more);
    }
    store(average, i, mean);
  }
}

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const AverageParameters& op) {
  const ParameterLayout layout{machine.precision, op.parameters};
  const FloatRange range = layout.cuts().range(op.part);
  const std::size_t packs = range.count() / Pack<float>::kLanes;
  const auto part = static_cast<float>(1 - op.decay);
  return kernel_of(op, [stream = machine.stream, first = range.begin, packs,
                        part](const auto& operands) {
    launch(stream, packs, average_parameters, tensor<const float>(operands.in.parameters) + first,
           tensor<const float>(operands.in.average), tensor<float>(operands.out.average), part,
           packs);
  });
}

}  // namespace spillway::cuda
