#include "src/cuda/kernels/kernels.h"
#include "src/cuda/kernels/launch.cuh"
#include "src/cuda/layout/parameter_layout.h"

namespace spillway::cuda {
namespace {

// Over the whole block: what is padding in both stays zero. `sum` may be `old_sum`.
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

// Gradients of parameters are floats in every precision, a multiple of 8 of them.
class AccumulateGradientsKernel final : public CudaKernel {
 public:
  AccumulateGradientsKernel(const Machine& machine, const AccumulateGradients& op)
      : CudaKernel{machine, operand_count(op)}, layout_{machine.precision, op.parameters} {}

 private:
  void enqueue(const KernelArguments& arguments) override {
    const auto operands = operands_of<AccumulateGradients>(arguments.operands);
    const std::size_t packs = layout_.float_count() / Pack<float>::kLanes;
    launch(stream(), packs, accumulate_gradients, tensor<float>(operands.in.sum),
           tensor<float>(operands.in.dparameters), tensor<float>(operands.out.sum), packs);
  }

  ParameterLayout layout_;
};

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const AccumulateGradients& op) {
  return std::make_unique<AccumulateGradientsKernel>(machine, op);
}

}  // namespace spillway::cuda
