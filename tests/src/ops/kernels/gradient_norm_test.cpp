#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "tests/src/ops/kernel_runner.h"

namespace spillway::test {
namespace {

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

// In doubles, of some thousand numbers: a rounding of 2^-53 each.
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

// As torch.nn.utils.clip_grad_norm_ does.
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

// A gradient that is no number spoils all of them, as in PyTorch, so that the loss shows it.
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
  numbers.resize(element_count(spec()));  // in bfloat16, a copy lies behind, which updates make
  EXPECT_TRUE(std::ranges::all_of(numbers, [](float number) { return std::isnan(number); }));
}

}  // namespace
}  // namespace spillway::test
