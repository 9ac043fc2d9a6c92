#include <cmath>
#include <tuple>

#include "tests/src/ops/kernel_runner.h"

namespace spillway::test {
namespace {

class RmspropUpdates
    : public KernelRunner,
      public ::testing::WithParamInterface<std::tuple<ParameterSpec, float, bool>> {};

// Weight decay applies to the first numbers of the canonical order: not to biases, gamma and beta.
std::size_t decayed_by_rmsprop(const ParameterSpec& spec) {
  if (std::holds_alternative<BatchNormParameters>(spec)) return 0;
  const auto* const convolution = std::get_if<ConvolutionParameters>(&spec);
  if (convolution == nullptr) return 10 * 6 * 2 * 2;
  return convolution->out * convolution->in * convolution->kernel.height *
         convolution->kernel.width;
}

// PyTorch's rule, three times: g = dw + 0.1 w; s = 0.9 s + 0.1 g^2; d = g / (sqrt(s) + 0.01); w = w
// - 0.25 d, or with a momentum v = 0.5 v + d; w = w - 0.25 v.
TEST_P(RmspropUpdates, FollowTheRuleInPlaceAndLeavePaddingZero) {
  const auto& [spec, momentum, decays_all] = GetParam();
  Values w = random_values(element_count(spec), 1);
  Values s(w.size(), 0.0);
  Values v(w.size(), 0.0);
  Block w_block = parameters(spec, w);
  Block s_block = parameters(spec, s);
  Block v_block = parameters(spec, v);
  const RmspropUpdate update{.parameters = spec,
                             .options = {.alpha = 0.9,
                                         .epsilon = 0.01F,
                                         .momentum = momentum,
                                         .weight_decay = 0.1F,
                                         .decays_all = decays_all}};
  for (unsigned step = 0; step < 3; ++step) {
    const Values dw = random_values(w.size(), 2 + step);
    Block dw_block = parameters(spec, dw);
    if (momentum > 0) {
      run(update, {&w_block, &s_block, &dw_block, &v_block, &w_block, &s_block, &v_block},
          {.learning_rate = 0.25F});
    } else {
      run(update, {&w_block, &s_block, &dw_block, &w_block, &s_block}, {.learning_rate = 0.25F});
    }
    for (std::size_t i = 0; i < w.size(); ++i) {
      const double g = dw[i] + (decays_all || i < decayed_by_rmsprop(spec) ? 0.1 * w[i] : 0);
      s[i] = 0.9 * s[i] + 0.1 * g * g;
      v[i] = static_cast<double>(momentum) * v[i] + g / (std::sqrt(s[i]) + 0.01);
      w[i] -= 0.25 * v[i];
    }
  }
  // Some thirty roundings of numbers up to 4.
  host::expect_near(values(spec, w_block, /*has_copy=*/true), w, 4e-6);
  host::expect_near(values(spec, s_block), s, 1e-6);
  if (momentum > 0) host::expect_near(values(spec, v_block), v, 8e-6);
  for (Block* block : {&w_block, &s_block, &v_block}) expect_same_on_host(spec, *block);
}

INSTANTIATE_TEST_SUITE_P(
    Specs, RmspropUpdates,
    ::testing::Combine(::testing::Values(ConvolutionParameters{20, 3, nets::square(3), true},
                                         ConvolutionParameters{33, 40, nets::square(1), false},
                                         LinearParameters{10, {6, 2, 2}, true},
                                         BatchNormParameters{33}),
                       ::testing::Values(0.F, 0.5F), ::testing::Bool()));

}  // namespace
}  // namespace spillway::test
