#include "src/ops/dropout_mask.h"
#include "tests/src/ops/kernel_runner.h"

namespace spillway::test {
namespace {

class Dropout : public KernelRunner {
 protected:
  // What dropout makes of ones.
  Values mask(const TensorShape& shape, const StepContext& context, std::uint32_t stream,
              float probability = 0.25F) {
    Block x = tensor(shape, Values(shape.elements(), 1.0));
    Block y = tensor(shape);
    run(DropoutForward{.x = shape, .probability = probability, .stream = stream}, {&x, &y},
        context);
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
  // 1200 elements, a quarter dropped: 300, give or take 4 standard deviations of 15.
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
    const Values one = mask(part, {.seed = 7, .step = 3, .first_sample = n}, 1);
    parts.insert(parts.end(), one.begin(), one.end());
  }
  EXPECT_EQ(parts, whole);
}

// Groups of four channels of a pixel draw together: vector 1 of three, channels 4 to 7 of 10, is
// group 1 * 3 + 1 of (step 3, stream 5).
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
