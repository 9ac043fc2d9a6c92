#include "src/cuda/kernels/kernels.h"
#include "src/cuda/kernels/launch.cuh"
#include "src/cuda/kernels/updates/update_range.cuh"
#include "src/cuda/layout/parameter_layout.h"

namespace spillway::cuda {
namespace {

__global__ void take_parameters(const float* taken, float* parameters, UpdateRange range) {
  for (std::size_t i = first_item(); i < range.packs; i += item_stride()) {
    const Pack<float> w = load(taken, i);
    store(parameters, i, w);
    range.store_copy(i, w);
  }
}

}  // namespace

// All of the part: what is padding in one is in the other.
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const TakeParameters& op) {
  const ParameterLayout layout{machine.precision, op.parameters};
  return kernel_of(op, [stream = machine.stream, layout, op](const auto& operands) {
    const UpdateRange range =
        UpdateRange::of(layout, op.parameters, op.part, operands.out.parameters, false);
    launch(stream, range.packs, take_parameters, tensor<const float>(operands.in.taken),
           tensor<float>(operands.out.parameters) + range.first, range);
  });
}

}  // namespace spillway::cuda
