#include <cmath>
#include <tuple>

#include "tests/src/ops/kernel_runner.h"

namespace spillway::test {
namespace {

class AdamUpdates : public KernelRunner,
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

// One number, its moments and how they change: Kingma and Ba's Algorithm 1 as PyTorch has it.
struct Adam {
  double w;
  double m = 0;
  double v = 0;

  void update(double dw, double decay, bool decoupled, int t) {
    constexpr double kRate = 0.25;
    if (decoupled) w -= kRate * decay * w;
    const double g = decoupled ? dw : dw + decay * w;
    m = 0.9 * m + 0.1 * g;
    v = 0.999 * v + 0.001 * g * g;
    const double first = m / (1 - std::pow(0.9, t));
    const double second = v / (1 - std::pow(0.999, t));
    w -= kRate * first / (std::sqrt(second) + 0.01);
  }
};

TEST_P(AdamUpdates, FollowTheRuleInPlaceAndLeavePaddingZero) {
  const auto& [spec, decoupled, decays_all] = GetParam();
  const Values start = random_values(element_count(spec), 1);
  std::vector<Adam> wanted;
  for (const double w : start) wanted.push_back({.w = w});
  Block w = parameters(spec, start);
  Block m = parameters(spec, Values(start.size(), 0.0));
  Block v = parameters(spec, Values(start.size(), 0.0));
  const AdamUpdate update{.parameters = spec,
                          .options = {.epsilon = 0.01F,
                                      .weight_decay = 0.1F,
                                      .decoupled = decoupled,
                                      .decays_all = decays_all}};
  for (int t = 1; t <= 3; ++t) {
    const Values dw = random_values(start.size(), static_cast<unsigned>(1 + t));
    Block dw_block = parameters(spec, dw);
    run(update, {&w, &m, &v, &dw_block, &w, &m, &v},
        {.step = static_cast<std::uint64_t>(t - 1), .learning_rate = 0.25F});
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      wanted[i].update(dw[i], decays_all || i < decayed(spec) ? 0.1 : 0, decoupled, t);
    }
  }
  Values weights;
  Values first;
  Values second;
  for (const Adam& number : wanted) {
    weights.push_back(number.w);
    first.push_back(number.m);
    second.push_back(number.v);
  }
  // Some thirty roundings of numbers up to 2; the moments are smaller.
  host::expect_near(values(spec, w, /*has_copy=*/true), weights, 2e-6);
  host::expect_near(values(spec, m), first, 2e-7);
  host::expect_near(values(spec, v), second, 2e-9);
  for (Block* block : {&w, &m, &v}) expect_same_on_host(spec, *block);
}

INSTANTIATE_TEST_SUITE_P(
    Specs, AdamUpdates,
    ::testing::Combine(::testing::Values(ConvolutionParameters{20, 3, nets::square(3), true},
                                         ConvolutionParameters{33, 40, nets::square(1), false},
                                         LinearParameters{10, {6, 2, 2}, true},
                                         BatchNormParameters{33}),
                       ::testing::Bool(), ::testing::Bool()));

class LargeAdamUpdate : public KernelRunner {};

// Whichever thread and whichever lane of a vector updates it.
TEST_F(LargeAdamUpdate, GivesEveryNumberTheSameBits) {
  const ParameterSpec spec = LinearParameters{64, {64, 4, 4}, false};
  const std::size_t count = element_count(spec);
  Block w = parameters(spec, Values(count, 0.7));
  Block m = parameters(spec, Values(count, 0.1));
  Block v = parameters(spec, Values(count, 0.3));
  Block dw = parameters(spec, Values(count, -0.4));
  run(AdamUpdate{.parameters = spec, .options = {}}, {&w, &m, &v, &dw, &w, &m, &v},
      {.step = 5, .learning_rate = 0.1F});
  const Values after = values(spec, w);
  EXPECT_NE(after.front(), 0.7);
  EXPECT_EQ(after, Values(count, after.front()));
}

}  // namespace
}  // namespace spillway::test
