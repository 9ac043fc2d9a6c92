#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <tuple>
#include <vector>

#include "tests/src/every_optimizer.h"
#include "tests/src/ops/kernel_runner.h"

namespace spillway::test {
namespace {

// Number of parameters with weight decay, first in the canonical order: excludes biases, gamma and
// beta.
std::size_t decayed(const ParameterSpec& spec) {
  if (std::holds_alternative<BatchNormParameters>(spec)) return 0;
  const auto* const convolution = std::get_if<ConvolutionParameters>(&spec);
  if (convolution == nullptr) return 10 * 6 * 2 * 2;
  return convolution->out * convolution->in * convolution->kernel.height *
         convolution->kernel.width;
}

constexpr double kRate = 0.25;

// One parameter and its optimizer state, in doubles. Follows PyTorch's documentation of each rule,
// and Lion's paper.
struct Parameter {
  double w;
  std::array<double, 2> state{};

  void update(const SgdOptions& rule, double decay, double dw, int /*t*/) {
    const double momentum = static_cast<double>(rule.momentum);
    const double g = dw + decay * w;
    state[0] = momentum * state[0] + g;
    w -= kRate * (rule.nesterov ? g + momentum * state[0] : state[0]);
  }
  // Algorithm 1 of Kingma and Ba.
  void update(const AdamOptions& rule, double decay, double dw, int t) {
    if (rule.decoupled) w -= kRate * decay * w;
    const double g = rule.decoupled ? dw : dw + decay * w;
    state[0] = rule.beta1 * state[0] + (1 - rule.beta1) * g;
    state[1] = rule.beta2 * state[1] + (1 - rule.beta2) * g * g;
    const double first = state[0] / (1 - std::pow(rule.beta1, t));
    const double second = state[1] / (1 - std::pow(rule.beta2, t));
    w -= kRate * first / (std::sqrt(second) + static_cast<double>(rule.epsilon));
  }
  void update(const RmspropOptions& rule, double decay, double dw, int /*t*/) {
    const double g = dw + decay * w;
    state[0] = rule.alpha * state[0] + (1 - rule.alpha) * g * g;
    state[1] = static_cast<double>(rule.momentum) * state[1] +
               g / (std::sqrt(state[0]) + static_cast<double>(rule.epsilon));
    w -= kRate * state[1];
  }
  // Algorithm 2 of Chen et al. (2023).
  void update(const LionOptions& rule, double decay, double dw, int /*t*/) {
    const double mean = rule.beta1 * state[0] + (1 - rule.beta1) * dw;
    w -= kRate * ((mean > 0 ? 1 : -1) + decay * w);
    state[0] = rule.beta2 * state[0] + (1 - rule.beta2) * dw;
  }
};

// An optimizer with a weight decay of 0.1. The tolerances, of weights and then state tensors, allow
// some thirty roundings of numbers as large as they get.
struct UpdateRow {
  OptimizerOptions options;
  std::vector<double> tolerances;
};

class Updates : public KernelRunner,
                public ::testing::WithParamInterface<std::tuple<ParameterSpec, UpdateRow, bool>> {};

TEST_P(Updates, FollowTheRuleInPlaceAndLeavePaddingZero) {
  const auto& [spec, row, all_decay] = GetParam();
  UpdateParameters update{.parameters = spec, .options = row.options};
  std::visit([all = all_decay](auto& rule) { rule.decays_all = all; }, update.options);
  const Values start = random_values(element_count(spec), 1);
  std::vector<Parameter> wanted;
  for (const double w : start) wanted.push_back({.w = w});
  std::vector<Block> own;  // parameters, optimizer state
  own.push_back(parameters(spec, start));
  while (own.size() < row.tolerances.size()) {
    own.push_back(parameters(spec, Values(start.size(), 0.0)));
  }
  for (int t = 1; t <= 3; ++t) {
    const Values gradient = random_values(start.size(), static_cast<unsigned>(1 + t));
    Block dw = parameters(spec, gradient);
    std::vector<Block*> blocks;
    for (Block& block : own) blocks.push_back(&block);
    blocks.push_back(&dw);
    run(update, operands_of_update(update, blocks, blocks.front()),
        {.step = static_cast<std::uint64_t>(t - 1), .learning_rate = static_cast<float>(kRate)});
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const double decay = all_decay || i < decayed(spec) ? 0.1 : 0;
      std::visit([&](const auto& rule) { wanted[i].update(rule, decay, gradient[i], t); },
                 row.options);
    }
  }
  for (std::size_t b = 0; b < own.size(); ++b) {
    Values numbers;
    for (const Parameter& each : wanted) numbers.push_back(b == 0 ? each.w : each.state[b - 1]);
    // Parameters are floats in all precisions.
    host::expect_near(values(spec, own[b], /*has_copy=*/b == 0), numbers, row.tolerances[b]);
    expect_same_on_host(spec, own[b]);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Rules, Updates,
    ::testing::Combine(
        ::testing::Values(ConvolutionParameters{20, 3, nets::square(3), true},
                          ConvolutionParameters{33, 40, nets::square(1), false},
                          LinearParameters{10, {6, 2, 2}, true}, BatchNormParameters{33}),
        ::testing::Values(
            UpdateRow{SgdOptions{.momentum = 0.5F, .weight_decay = 0.1F}, {1e-6, 1e-6}},
            UpdateRow{SgdOptions{.momentum = 0.5F, .weight_decay = 0.1F, .nesterov = true},
                      {1e-6, 1e-6}},
            UpdateRow{AdamOptions{.epsilon = 0.01F, .weight_decay = 0.1F}, {2e-6, 2e-7, 2e-9}},
            UpdateRow{AdamOptions{.epsilon = 0.01F, .weight_decay = 0.1F, .decoupled = true},
                      {2e-6, 2e-7, 2e-9}},
            UpdateRow{RmspropOptions{.alpha = 0.9, .epsilon = 0.01F, .weight_decay = 0.1F},
                      {4e-6, 1e-6}},
            UpdateRow{RmspropOptions{
                          .alpha = 0.9, .epsilon = 0.01F, .momentum = 0.5F, .weight_decay = 0.1F},
                      {4e-6, 1e-6, 8e-6}},
            UpdateRow{LionOptions{.weight_decay = 0.1F}, {2e-6, 1e-7}}),
        ::testing::Bool()));

class LargeAdamUpdate : public KernelRunner {};

// Any thread and any lane of a vector gives the same bits.
TEST_F(LargeAdamUpdate, GivesEveryNumberTheSameBits) {
  const ParameterSpec spec = LinearParameters{64, {64, 4, 4}, false};
  const std::size_t count = element_count(spec);
  Block w = parameters(spec, Values(count, 0.7));
  Block m = parameters(spec, Values(count, 0.1));
  Block v = parameters(spec, Values(count, 0.3));
  Block dw = parameters(spec, Values(count, -0.4));
  run(UpdateParameters{.parameters = spec, .options = AdamOptions{}}, {&w, &m, &v, &dw, &w, &m, &v},
      {.step = 5, .learning_rate = 0.1F});
  const Values after = values(spec, w);
  EXPECT_NE(after.front(), 0.7);
  EXPECT_EQ(after, Values(count, after.front()));
}

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
