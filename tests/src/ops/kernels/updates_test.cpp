#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <tuple>

#include "tests/src/ops/kernel_runner.h"

namespace spillway::test {
namespace {

class SgdUpdates : public KernelRunner,
                   public ::testing::WithParamInterface<std::tuple<ParameterSpec, bool, bool>> {};

// Number of parameters with weight decay, first in the canonical order: excludes biases, gamma and
// beta.
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
  // Parameters are floats in all precisions. Allows about ten roundings of numbers up to 2.
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

class AdamUpdates : public KernelRunner,
                    public ::testing::WithParamInterface<std::tuple<ParameterSpec, bool, bool>> {};

// One parameter with its moments and update: Algorithm 1 of Kingma and Ba, as in PyTorch.
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
  // Allows about thirty roundings of numbers up to 2; the moments are smaller.
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

// Any thread and any lane of a vector gives the same bits.
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

class RmspropUpdates
    : public KernelRunner,
      public ::testing::WithParamInterface<std::tuple<ParameterSpec, float, bool>> {};

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
      const double g = dw[i] + (decays_all || i < decayed(spec) ? 0.1 * w[i] : 0);
      s[i] = 0.9 * s[i] + 0.1 * g * g;
      v[i] = static_cast<double>(momentum) * v[i] + g / (std::sqrt(s[i]) + 0.01);
      w[i] -= 0.25 * v[i];
    }
  }
  // Allows about thirty roundings of numbers up to 4.
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

class AccumulatedGradients : public KernelRunner,
                             public ::testing::WithParamInterface<ParameterSpec> {};

// Each sum is rounded once.
TEST_P(AccumulatedGradients, AreTheSumsInPlaceAndLeavePaddingZero) {
  const ParameterSpec spec = GetParam();
  const std::vector<float> first = to_floats(random_values(element_count(spec), 1));
  const std::vector<float> second = to_floats(random_values(element_count(spec), 2));
  Values expected(first.size());
  for (std::size_t i = 0; i < first.size(); ++i) {
    expected[i] = static_cast<double>(first[i] + second[i]);
  }
  Block sum = parameters(spec, Values(first.begin(), first.end()));
  Block part = parameters(spec, Values(second.begin(), second.end()));
  run(AccumulateGradients{.parameters = spec}, {&sum, &part, &sum});
  EXPECT_EQ(values(spec, sum), expected);
  expect_same_on_host(spec, sum);
}

// The last one is large enough for a team of threads.
INSTANTIATE_TEST_SUITE_P(Specs, AccumulatedGradients,
                         ::testing::Values(ConvolutionParameters{20, 3, nets::square(3), true},
                                           ConvolutionParameters{33, 40, nets::square(1), false},
                                           LinearParameters{10, {6, 2, 2}, true},
                                           BatchNormParameters{33},
                                           LinearParameters{100, {400, 1, 1}, true}));

class AveragesOfParameters : public KernelRunner,
                             public ::testing::WithParamInterface<ParameterSpec> {};

// Applies average = average + 0.25 (w - average) twice; the parameters do not change.
TEST_P(AveragesOfParameters, GoTheirPartTowardsTheParameters) {
  const ParameterSpec& spec = GetParam();
  const Values w = random_values(element_count(spec), 1);
  Values average = random_values(w.size(), 2);
  Block w_block = parameters(spec, w);
  Block average_block = parameters(spec, average);
  for (int step = 0; step < 2; ++step) {
    run(AverageParameters{.parameters = spec, .decay = 0.75},
        {&w_block, &average_block, &average_block});
    for (std::size_t i = 0; i < w.size(); ++i) average[i] += 0.25 * (w[i] - average[i]);
  }
  // Allows about six roundings of numbers up to 2.
  host::expect_near(values(spec, average_block), average, 1e-6);
  host::expect_near(values(spec, w_block, /*has_copy=*/true), w, 1e-7);
  expect_same_on_host(spec, average_block);
}

INSTANTIATE_TEST_SUITE_P(Specs, AveragesOfParameters,
                         ::testing::Values(ConvolutionParameters{20, 3, nets::square(3), true},
                                           LinearParameters{10, {6, 2, 2}, true},
                                           BatchNormParameters{33}));

class GradientNorm : public KernelRunner {
 protected:
  [[nodiscard]] static ParameterSpec spec() {
    return LinearParameters{
        .out = 37, .in = {.channels = 5, .height = 3, .width = 2}, .bias = true};
  }
  [[nodiscard]] static double squares_of(const Values& values) {
    double sum = 0;
    for (const double value : values) sum += value * value;
    return sum;
  }
  [[nodiscard]] static double number_of(Block& block) { return block.numbers<double>().front(); }
};

// Sums of some thousand doubles, each rounded by up to 2^-53.
constexpr double kSquaresTolerance = 1e-12;

TEST_F(GradientNorm, AddsUpSquaresOfAllGradients) {
  const Values first = host::random_values(element_count(spec()), 1);
  const Values second = host::random_values(element_count(spec()), 2);
  Block a = parameters(spec(), first);
  Block b = parameters(spec(), second);
  Block squares = numbers(std::vector<double>{123});
  run(AddSquares{.parameters = spec()}, {&a, &squares});
  EXPECT_NEAR(number_of(squares), squares_of(first), kSquaresTolerance * squares_of(first));
  run(AddSquares{.parameters = spec(), .accumulates = true}, {&b, &squares, &squares});
  const double both = squares_of(first) + squares_of(second);
  EXPECT_NEAR(number_of(squares), both, kSquaresTolerance * both);
}

// Same as torch.nn.utils.clip_grad_norm_.
TEST_F(GradientNorm, ScalesDownWhatIsLarger) {
  constexpr double kNorm = 4;
  const Values values = host::random_values(element_count(spec()), 3);
  Block squares = numbers(std::vector<double>{kNorm * kNorm});
  for (const float largest : {0.5F, 3.F, 8.F}) {
    Block gradient = parameters(spec(), values);
    run(ClipGradient{.parameters = spec(), .largest_norm = largest},
        {&squares, &gradient, &gradient});
    const auto scale =
        static_cast<float>(std::min(1.0, static_cast<double>(largest) / (kNorm + 1e-6)));
    Values wanted;
    for (const double value : values) {
      wanted.push_back(static_cast<double>(static_cast<float>(value) * scale));
    }
    EXPECT_EQ(this->values(spec(), gradient), wanted);
  }
}

// A NaN gradient makes all gradients NaN, as in PyTorch, so that the loss shows it.
TEST_F(GradientNorm, OfWhatIsNoNumberLeavesNone) {
  Values values = host::random_values(element_count(spec()), 4);
  values[7] = std::numeric_limits<double>::quiet_NaN();
  Block gradient = parameters(spec(), values);
  Block squares = numbers(std::vector<double>{0});
  run(AddSquares{.parameters = spec()}, {&gradient, &squares});
  EXPECT_TRUE(std::isnan(number_of(squares)));
  Block whole = parameters(spec(), host::random_values(element_count(spec()), 5));
  run(ClipGradient{.parameters = spec(), .largest_norm = 1}, {&squares, &whole, &whole});
  std::vector<float> numbers = whole.numbers<float>();
  numbers.resize(element_count(spec()));  // bfloat16 appends a copy that only updates write
  EXPECT_TRUE(std::ranges::all_of(numbers, [](float number) { return std::isnan(number); }));
}

}  // namespace
}  // namespace spillway::test
