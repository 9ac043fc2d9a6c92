#include "tests/src/cuda/parameter_kernel.h"

namespace spillway::cuda {
namespace {

class CudaSgdUpdate : public ParameterKernel {};

// Exact: both round after each operation. Parameters are floats in all precisions.
TEST_P(CudaSgdUpdate, GivesTheHostsBitsInPlaceStepAfterStep) {
  Operand w = parameters(host::random_values(count_, 1));
  Operand v = parameters(Values(count_, 0.0));
  Operand dw = parameters(host::random_values(count_, 2));
  for (int step = 0; step < 4; ++step) {
    const SgdUpdate update{
        .parameters = spec_,
        .options = {.momentum = 0.9F, .weight_decay = 0.1F, .nesterov = step % 2 == 1}};
    run(update, {&w, &v, &dw, &w, &v}, {.learning_rate = 0.3F});
  }
  expect_same_bits(w);
  expect_same_bits(v);
}

TEST_P(CudaSgdUpdate, KeepsPaddingZeroAndTheCopyUpToDate) {
  Operand w = parameters(host::random_values(count_, 1));
  Operand v = parameters(host::random_values(count_, 3));
  Operand dw = parameters(host::random_values(count_, 2));
  run_on_device(SgdUpdate{.parameters = spec_, .options = {.momentum = 0.9F, .weight_decay = 0.1F}},
                {&w, &v, &dw, &w, &v}, {.learning_rate = 0.3F});
  expect_as_imported(w);
}

INSTANTIATE_TEST_SUITE_P(Specs, CudaSgdUpdate, kParameterKernelCases);

}  // namespace
}  // namespace spillway::cuda
