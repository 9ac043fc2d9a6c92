#include "tests/src/host/kernel_runner.h"

namespace spillway::host {
namespace {

class SgdUpdates : public KernelRunner, public testing::WithParamInterface<ParameterSpec> {};

// PyTorch's rule, twice: g = dw + 0.1 w; v = 0.5 v + g; w = w - 0.25 v.
TEST_P(SgdUpdates, FollowTheRuleInPlaceAndLeavePaddingZero) {
  const ParameterSpec spec = GetParam();
  Values w = random_values(element_count(spec), 1);
  Values v(w.size(), 0.0);
  const Values dw = random_values(w.size(), 2);
  Block w_block = parameters(spec, w);
  Block v_block = parameters(spec, v);
  Block dw_block = parameters(spec, dw);
  const SgdUpdate update{.parameters = spec, .momentum = 0.5F, .weight_decay = 0.1F};
  for (int step = 0; step < 2; ++step) {
    run(update, {&w_block, &v_block, &dw_block, &w_block, &v_block}, {.learning_rate = 0.25F});
    for (std::size_t i = 0; i < w.size(); ++i) {
      v[i] = 0.5 * v[i] + dw[i] + 0.1 * w[i];
      w[i] -= 0.25 * v[i];
    }
  }
  // Some ten roundings of numbers up to 2.
  expect_near(values(spec, w_block), w, 1e-6);
  expect_near(values(spec, v_block), v, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Specs, SgdUpdates,
                         testing::Values(ConvolutionParameters{20, 3, nets::square(3), true},
                                         LinearParameters{10, {6, 2, 2}, true},
                                         BatchNormParameters{33}));

}  // namespace
}  // namespace spillway::host
