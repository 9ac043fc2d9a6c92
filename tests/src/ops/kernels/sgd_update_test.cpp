#include <tuple>

#include "tests/src/ops/kernel_runner.h"

namespace spillway::test {
namespace {

class SgdUpdates : public KernelRunner,
                   public ::testing::WithParamInterface<std::tuple<ParameterSpec, bool, bool>> {};

// Weight decay applies to so many of the first numbers of the canonical order: not to biases, which
// are the last, nor to gamma and beta.
std::size_t decayed(const ParameterSpec& spec) {
  if (std::holds_alternative<BatchNormParameters>(spec)) return 0;
  const auto* const convolution = std::get_if<ConvolutionParameters>(&spec);
  if (convolution == nullptr) return 10 * 6 * 2 * 2;
  return convolution->out * convolution->in * convolution->kernel.height *
         convolution->kernel.width;
}

// PyTorch's rule, twice: g = dw + 0.1 w; v = 0.5 v + g; w = w - 0.25 v, or with Nesterov's momentum
// w = w - 0.25 (g + 0.5 v).
TEST_P(SgdUpdates, FollowTheRuleInPlaceAndLeavePaddingZero) {
  const auto& [spec, nesterov, decays_all] = GetParam();
  Values w = random_values(element_count(spec), 1);
  Values v(w.size(), 0.0);
  const Values dw = random_values(w.size(), 2);
  Block w_block = parameters(spec, w);
  Block v_block = parameters(spec, v);
  Block dw_block = parameters(spec, dw);
  const SgdUpdate update{
      .parameters = spec,
      .options = {
          .momentum = 0.5F, .weight_decay = 0.1F, .nesterov = nesterov, .decays_all = decays_all}};
  for (int step = 0; step < 2; ++step) {
    run(update, {&w_block, &v_block, &dw_block, &w_block, &v_block}, {.learning_rate = 0.25F});
    for (std::size_t i = 0; i < w.size(); ++i) {
      const double g = dw[i] + (decays_all || i < decayed(spec) ? 0.1 * w[i] : 0);
      v[i] = 0.5 * v[i] + g;
      w[i] -= 0.25 * (nesterov ? g + 0.5 * v[i] : v[i]);
    }
  }
  // Parameters are floats in all precisions. Some ten roundings of numbers up to 2.
  host::expect_near(values(spec, w_block, /*has_copy=*/true), w, 1e-6);
  host::expect_near(values(spec, v_block), v, 1e-6);
  expect_same_on_host(spec, w_block);
  expect_same_on_host(spec, v_block);
}

INSTANTIATE_TEST_SUITE_P(
    Specs, SgdUpdates,
    ::testing::Combine(::testing::Values(ConvolutionParameters{20, 3, nets::square(3), true},
                                         ConvolutionParameters{33, 40, nets::square(1), false},
                                         LinearParameters{10, {6, 2, 2}, true},
                                         BatchNormParameters{33}),
                       ::testing::Bool(), ::testing::Bool()));

}  // namespace
}  // namespace spillway::test
