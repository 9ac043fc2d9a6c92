#include "tests/src/cuda/parameter_kernel.h"

namespace spillway::cuda {
namespace {

class CudaAdamUpdate : public ParameterKernel {};

// Exact: both round after each operation, square roots and quotients too. Parameters are floats in
// all precisions.
TEST_P(CudaAdamUpdate, GivesTheHostsBitsInPlaceStepAfterStep) {
  Operand w = parameters(host::random_values(count_, 1));
  Operand m = parameters(Values(count_, 0.0));
  Operand v = parameters(Values(count_, 0.0));
  Operand dw = parameters(host::random_values(count_, 2));
  for (std::uint64_t step = 0; step < 4; ++step) {
    const AdamUpdate update{.parameters = spec_,
                            .options = {.weight_decay = 0.1F, .decoupled = step % 2 == 1}};
    run(update, {&w, &m, &v, &dw, &w, &m, &v}, {.step = step, .learning_rate = 0.03F});
  }
  expect_same_bits(w);
  expect_same_bits(m);
  expect_same_bits(v);
}

TEST_P(CudaAdamUpdate, KeepsPaddingZeroAndTheCopyUpToDate) {
  Operand w = parameters(host::random_values(count_, 1));
  Operand m = parameters(host::random_values(count_, 3));
  Operand v = parameters(Values(count_, 0.5));
  Operand dw = parameters(host::random_values(count_, 2));
  run_on_device(AdamUpdate{.parameters = spec_, .options = {.weight_decay = 0.1F}},
                {&w, &m, &v, &dw, &w, &m, &v}, {.learning_rate = 0.03F});
  expect_as_imported(w);
}

INSTANTIATE_TEST_SUITE_P(Specs, CudaAdamUpdate, kParameterKernelCases);

}  // namespace
}  // namespace spillway::cuda
