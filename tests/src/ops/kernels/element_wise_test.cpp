#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include "src/ops/dropout_mask.h"
#include "tests/src/ops/kernel_runner.h"

namespace spillway::test {
namespace {

// All results are exact: at most one float operation, rounded once.
class ElementWise : public KernelRunner, public ::testing::WithParamInterface<TensorShape> {
 protected:
  [[nodiscard]] Values expected(const std::function<float(float, float, float)>& f) const {
    Values result(a_.size());
    for (std::size_t i = 0; i < a_.size(); ++i) {
      result[i] = static_cast<double>(
          f(static_cast<float>(a_[i]), static_cast<float>(b_[i]), static_cast<float>(y_[i])));
    }
    return result;
  }
  // Expects `result` from the operation, in a new block and with the same bits over operand `over`.
  template <class Op>
  void expect_result(const Op& operation, std::vector<Block*> operands, std::size_t over,
                     const Values& result) {
    Block fresh = tensor(shape_);
    operands.push_back(&fresh);
    run(operation, operands);
    expect_near(values(shape_, fresh), result, 0);
    operands.back() = operands[over];
    run(operation, operands);
    EXPECT_EQ(operands[over]->bytes(), fresh.bytes());
  }

  const TensorShape shape_ = GetParam();
  const Values a_ = random_values(shape_.elements(), 1);
  const Values b_ = random_values(shape_.elements(), 2);
  // Like the output of a ReLU: half of the numbers are zero.
  const Values y_ = [this] {
    Values values = random_values(shape_.elements(), 3);
    for (double& value : values) value = std::max(value, 0.0);
    return values;
  }();
};

TEST_P(ElementWise, IsWhatOneFloatOperationGivesInPlaceToo) {
  // Operands are a, b and y; the result may go over the operand `over`.
  const auto expect_of = [&](const auto& operation, const std::vector<std::size_t>& operands,
                             std::size_t over, const auto& f) {
    std::array blocks{tensor(shape_, a_), tensor(shape_, b_), tensor(shape_, y_)};
    std::vector<Block*> read;
    for (const std::size_t i : operands) read.push_back(&blocks.at(i));
    expect_result(operation, read, over, expected(f));
  };
  const auto relu = [](float p, float, float) { return std::max(p, 0.F); };
  const auto masked = [](float p, float, float r) { return r == 0 ? 0.F : p; };
  const auto sum = [](float p, float q, float) { return p + q; };
  expect_of(ReluForward{.x = shape_}, {0}, 0, relu);
  expect_of(ReluBackward{.x = shape_}, {2, 0}, 1, masked);
  expect_of(AddForward{.x = shape_}, {0, 1}, 0, sum);
  expect_of(AddForward{.x = shape_, .relu = true}, {0, 1}, 0,
            [&](float p, float q, float r) { return relu(sum(p, q, r), q, r); });
  expect_of(AddGradients{.x = shape_}, {0, 1}, 0, sum);
  expect_of(AddGradients{.x = shape_, .relu = true}, {0, 1, 2}, 0,
            [&](float p, float q, float r) { return masked(sum(p, q, r), q, r); });
}

// A few float roundings of numbers around 1.
constexpr double kGeluTolerance = 1e-6;

double gelu(double x) { return x / 2 * std::erfc(-x / std::sqrt(2.0)); }

TEST_P(ElementWise, GeluIsEachNumberTimesTheShareOfNormalOnesBelow) {
  Block x = tensor(shape_, a_);
  Block y = tensor(shape_);
  run(GeluForward{.x = shape_}, {&x, &y});
  Values wanted = a_;
  for (double& value : wanted) value = gelu(value);
  expect_near(values(shape_, y), wanted, kGeluTolerance);
  expect_same_on_host(shape_, y, kGeluTolerance);
}

TEST_P(ElementWise, GeluBackwardIsItsSlopeInPlaceToo) {
  Block x = tensor(shape_, a_);
  Block dy = tensor(shape_, b_);
  Block dx = tensor(shape_);
  run(GeluBackward{.x = shape_}, {&x, &dy, &dx});
  Values slopes(a_.size());
  for (std::size_t i = 0; i < a_.size(); ++i) {
    constexpr double kStep = 1e-5;
    slopes[i] = b_[i] * (gelu(a_[i] + kStep) - gelu(a_[i] - kStep)) / (2 * kStep);
  }
  expect_near(values(shape_, dx), slopes, kGeluTolerance);
  expect_same_on_host(shape_, dx, kGeluTolerance);
  run(GeluBackward{.x = shape_}, {&x, &dy, &dy});
  EXPECT_EQ(dy.bytes(), dx.bytes());
}

// by_mask saves reading y and changes no bit, neither of padding nor in place.
TEST_P(ElementWise, TheMaskOfASumStandsForItsOutput) {
  Block a = tensor(shape_, a_);
  Block b = tensor(shape_, b_);
  Block y = tensor(shape_);
  run(AddForward{.x = shape_, .relu = true}, {&a, &b, &y});
  const AddForward masked{.x = shape_, .relu = true, .saves_mask = true};
  Block same_y = tensor(shape_);
  Block mask = saved_by(masked);
  run(masked, {&a, &b, &same_y, &mask});
  EXPECT_EQ(same_y.bytes(), y.bytes());
  Block over = tensor(shape_, a_);
  Block same_mask = saved_by(masked);
  run(masked, {&over, &b, &over, &same_mask});
  EXPECT_EQ(over.bytes(), y.bytes());
  EXPECT_EQ(same_mask.bytes(), mask.bytes());

  Block dx = tensor(shape_);
  run(ReluBackward{.x = shape_}, {&y, &b, &dx});
  Block dy = tensor(shape_, b_);
  run(ReluBackward{.x = shape_, .by_mask = true}, {&mask, &dy, &dy});
  EXPECT_EQ(dy.bytes(), dx.bytes());

  Block d = tensor(shape_);
  run(AddGradients{.x = shape_, .relu = true}, {&a, &b, &y, &d});
  Block same_d = tensor(shape_);
  run(AddGradients{.x = shape_, .relu = true, .by_mask = true}, {&a, &b, &mask, &same_d});
  EXPECT_EQ(same_d.bytes(), d.bytes());
}

// A NaN shows, and a zero keeps its sign; a vector maximum could lose both.
TEST_P(ElementWise, TheMaskOfASumStandsForItsOutputOfNansAndZerosToo) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr std::array kSpecial{kNan, -0., 0., -kInfinity, kInfinity, -1e-45, 1e-45};
  Values a = a_;
  Values b = b_;
  for (std::size_t i = 0; i < a.size(); i += 2) {
    a[i] = kSpecial.at(i / 2 % kSpecial.size());
    b[i] = -0.;
  }
  Block of_a = tensor(shape_, a);
  Block of_b = tensor(shape_, b);
  Block y = tensor(shape_);
  run(AddForward{.x = shape_, .relu = true}, {&of_a, &of_b, &y});
  const AddForward masked{.x = shape_, .relu = true, .saves_mask = true};
  Block same_y = tensor(shape_);
  Block mask = saved_by(masked);
  run(masked, {&of_a, &of_b, &same_y, &mask});
  EXPECT_EQ(same_y.bytes(), y.bytes());
  Block dx = tensor(shape_);
  run(ReluBackward{.x = shape_}, {&y, &of_a, &dx});
  Block same_dx = tensor(shape_);
  run(ReluBackward{.x = shape_, .by_mask = true}, {&mask, &of_a, &same_dx});
  EXPECT_EQ(same_dx.bytes(), dx.bytes());
}

// Writes over both inputs, with a ReLU's output, with its mask, and without either.
TEST_P(ElementWise, AddGradientsTwiceLeavesTheSameSumInBothBlocks) {
  const AddForward forward{.x = shape_, .relu = true, .saves_mask = true};
  Block terms = tensor(shape_, y_);
  Block nothing = tensor(shape_, Values(y_.size(), 0.0));
  Block y = tensor(shape_);
  Block mask = saved_by(forward);
  run(forward, {&terms, &nothing, &y, &mask});
  for (const bool relu : {false, true}) {
    for (const bool by_mask : {false, true}) {
      if (by_mask && !relu) continue;
      Block a = tensor(shape_, a_);
      Block b = tensor(shape_, b_);
      Block d = tensor(shape_);
      std::vector<Block*> operands{&a, &b};
      if (relu) operands.push_back(by_mask ? &mask : &y);
      operands.push_back(&d);
      AddGradients operation{.x = shape_, .relu = relu, .by_mask = by_mask};
      run(operation, operands);
      operation.twice = true;
      operands.back() = &a;
      operands.push_back(&b);
      run(operation, operands);
      EXPECT_EQ(a.bytes(), d.bytes());
      EXPECT_EQ(b.bytes(), d.bytes());
    }
  }
}

// A NaN is not positive: its gradient is zero, with the mask and with the output.
TEST_P(ElementWise, TheMaskOfASumLeavesOutNans) {
  Values x(shape_.elements(), 1.0);
  x.back() = std::numeric_limits<double>::quiet_NaN();
  const AddForward forward{.x = shape_, .relu = true, .saves_mask = true};
  Block block = tensor(shape_, x);
  Block mask = saved_by(forward);
  run(forward, {&block, &block, &block, &mask});
  EXPECT_TRUE(std::isnan(values(shape_, block).back()));
  Block dy = tensor(shape_, Values(shape_.elements(), 1.0));
  run(ReluBackward{.x = shape_, .by_mask = true}, {&mask, &dy, &dy});
  EXPECT_EQ(values(shape_, dy).back(), 0);
  EXPECT_EQ(values(shape_, dy).front(), 1);
}

TEST_P(ElementWise, ReluLetsNansThrough) {
  Values x(shape_.elements(), -1.0);
  x.back() = std::numeric_limits<double>::quiet_NaN();
  Block block = tensor(shape_, x);
  run(ReluForward{.x = shape_}, {&block, &block});
  const Values y = values(shape_, block);
  EXPECT_TRUE(std::isnan(y.back()));
  EXPECT_EQ(y.front(), 0);
}

// The last shape has more packs than a block has threads; some threads of its last block have none.
INSTANTIATE_TEST_SUITE_P(Shapes, ElementWise,
                         ::testing::Values(TensorShape{1, {3, 5, 3}}, TensorShape{3, {6, 2, 5}},
                                           TensorShape{3, {16, 3, 3}}, TensorShape{1, {33, 1, 1}},
                                           TensorShape{5, {24, 13, 11}}));

class Dropout : public KernelRunner {
 protected:
  // Returns the result of dropout on ones.
  Values mask(const TensorShape& shape, const StepContext& context, std::uint32_t stream,
              float probability = 0.25F, std::size_t first_sample = 0) {
    Block x = tensor(shape, Values(shape.elements(), 1.0));
    Block y = tensor(shape);
    run(
        DropoutForward{
            .x = shape, .probability = probability, .stream = stream, .first_sample = first_sample},
        {&x, &y}, context);
    return values(shape, y);
  }

  const TensorShape shape_{3, {20, 4, 5}};
  const StepContext context_{.seed = 7, .step = 3};
};

TEST_F(Dropout, DropsItsShareAndScalesTheRest) {
  const Values kept = mask(shape_, context_, 0);
  const double scale = rounded({static_cast<double>(1.F / 0.75F)})[0];
  double dropped = 0;
  for (const double value : kept) {
    EXPECT_TRUE(value == 0 || value == scale) << value;
    dropped += value == 0 ? 1 : 0;
  }
  // A quarter of 1200 elements is dropped: 300, plus or minus 4 standard deviations of 15.
  EXPECT_NEAR(dropped, 300, 60);
}

TEST_F(Dropout, IsAFunctionOfSeedStepStreamAndPlace) {
  const Values same = mask(shape_, context_, 1);
  EXPECT_EQ(mask(shape_, context_, 1), same);
  EXPECT_NE(mask(shape_, {.seed = 8, .step = 3}, 1), same);
  EXPECT_NE(mask(shape_, {.seed = 7, .step = 4}, 1), same);
  EXPECT_NE(mask(shape_, context_, 2), same);
}

TEST_F(Dropout, OfAPartOfABatchDrawsTheMaskOfTheWhole) {
  const Values whole = mask(shape_, context_, 1);
  const TensorShape part{1, shape_.image};
  Values parts;
  for (std::size_t n = 0; n < shape_.batch; ++n) {
    const Values one = mask(part, context_, 1, 0.25F, n);
    parts.insert(parts.end(), one.begin(), one.end());
  }
  EXPECT_EQ(parts, whole);
}

// Four channels of a pixel share one call of philox. Channels 4 to 7 of 10 of the second of three
// vectors are group 1 * 3 + 1 in (step 3, stream 5).
TEST_F(Dropout, DrawsOnePhiloxWordAnElementInTheOrderOfChannels) {
  const Values kept = mask({3, {10, 1, 1}}, context_, 5, 0.5F);
  const PhiloxCounter words = philox({4, 0, 3, 5}, {7, 0});
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(kept[10 + 4 + i], words[i] < 0x80000000U ? 0.0 : 2.0);
  }
}

TEST_F(Dropout, BackwardDrawsTheMaskOfForwardAndBothWorkInPlace) {
  const StepContext context{.seed = 0x123456789ABCDEF0, .step = 3};
  for (const TensorShape& shape : {shape_, TensorShape{1, {3, 7, 5}}, TensorShape{2, {1000, 1, 1}},
                                   TensorShape{5, {12, 9, 7}}}) {
    Block dy = tensor(shape, random_values(shape.elements(), 1));
    Block x = tensor(shape, random_values(shape.elements(), 1));
    Block forward = tensor(shape);
    Block backward = tensor(shape);
    run(DropoutForward{.x = shape, .probability = 0.5F, .stream = 2}, {&dy, &forward}, context);
    run(DropoutBackward{.x = shape, .probability = 0.5F, .stream = 2}, {&dy, &backward}, context);
    expect_same_on_host(shape, forward);
    EXPECT_EQ(forward.bytes(), backward.bytes());
    run(DropoutBackward{.x = shape, .probability = 0.5F, .stream = 2}, {&dy, &dy}, context);
    EXPECT_EQ(dy.bytes(), backward.bytes());
    run(DropoutForward{.x = shape, .probability = 0.5F, .stream = 2}, {&x, &x}, context);
    EXPECT_EQ(x.bytes(), backward.bytes());
  }
}

TEST_F(Dropout, ProbabilityZeroKeepsAllAndOneDropsAll) {
  EXPECT_EQ(mask(shape_, context_, 0, 0.F), Values(shape_.elements(), 1.0));
  EXPECT_EQ(mask(shape_, context_, 0, 1.F), Values(shape_.elements(), 0.0));
}

}  // namespace
}  // namespace spillway::test
