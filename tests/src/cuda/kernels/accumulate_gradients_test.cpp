#include "tests/src/cuda/parameter_kernel.h"

namespace spillway::cuda {
namespace {

class CudaAccumulatedGradients : public ParameterKernel {};

// Exact: both round once. Gradients of parameters are floats in all precisions.
TEST_P(CudaAccumulatedGradients, AreTheHostsBitsInPlace) {
  Operand sum = parameters(host::random_values(count_, 1));
  Operand part = parameters(host::random_values(count_, 2));
  run(AccumulateGradients{.parameters = spec_}, {&sum, &part, &sum});
  expect_same_bits(sum);
}

INSTANTIATE_TEST_SUITE_P(Specs, CudaAccumulatedGradients, kParameterKernelCases);

}  // namespace
}  // namespace spillway::cuda
