#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include "tests/src/ops/kernel_runner.h"

namespace spillway::test {
namespace {

// All results are exact: one float operation, or none, rounded once.
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
  // The operation writes `result` into a new block and the same bits over operand `over`.
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
  // As a ReLU leaves it: half of it zero.
  const Values y_ = [this] {
    Values values = random_values(shape_.elements(), 3);
    for (double& value : values) value = std::max(value, 0.0);
    return values;
  }();
};

TEST_P(ElementWise, ReluKeepsWhatIsPositive) {
  Block a = tensor(shape_, a_);
  expect_result(ReluForward{.x = shape_}, {&a}, 0,
                expected([](float p, float, float) { return std::max(p, 0.F); }));
}

TEST_P(ElementWise, ReluBackwardIsZeroWhereTheOutputWas) {
  Block a = tensor(shape_, a_);
  Block y = tensor(shape_, y_);
  expect_result(ReluBackward{.x = shape_}, {&y, &a}, 1,
                expected([](float p, float, float r) { return r == 0 ? 0.F : p; }));
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

TEST_P(ElementWise, AddSums) {
  Block a = tensor(shape_, a_);
  Block b = tensor(shape_, b_);
  expect_result(AddForward{.x = shape_}, {&a, &b}, 0,
                expected([](float p, float q, float) { return p + q; }));
}

TEST_P(ElementWise, AddWithReluKeepsWhatIsPositive) {
  Block a = tensor(shape_, a_);
  Block b = tensor(shape_, b_);
  expect_result(AddForward{.x = shape_, .relu = true}, {&a, &b}, 0,
                expected([](float p, float q, float) { return std::max(p + q, 0.F); }));
}

TEST_P(ElementWise, AddGradientsSums) {
  Block a = tensor(shape_, a_);
  Block b = tensor(shape_, b_);
  expect_result(AddGradients{.x = shape_}, {&a, &b}, 0,
                expected([](float p, float q, float) { return p + q; }));
}

TEST_P(ElementWise, AddGradientsWithReluIsZeroWhereTheOutputWas) {
  Block a = tensor(shape_, a_);
  Block b = tensor(shape_, b_);
  Block y = tensor(shape_, y_);
  expect_result(AddGradients{.x = shape_, .relu = true}, {&a, &b, &y}, 0,
                expected([](float p, float q, float r) { return r == 0 ? 0.F : p + q; }));
}

// What by_mask saves reading of y changes no bit: of padding neither, nor over what is read.
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

// A NaN shows, and a zero keeps its sign: what a maximum of vectors could lose.
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

// Over both of what it reads, with a ReLU's output, with its mask, and without either.
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

// A NaN is not positive: its gradient is zero with the mask as with the output.
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

// The last has more packs than threads of a block, and its last block has threads without one.
INSTANTIATE_TEST_SUITE_P(Shapes, ElementWise,
                         ::testing::Values(TensorShape{1, {3, 5, 3}}, TensorShape{3, {6, 2, 5}},
                                           TensorShape{3, {16, 3, 3}}, TensorShape{1, {33, 1, 1}},
                                           TensorShape{5, {24, 13, 11}}));

}  // namespace
}  // namespace spillway::test
