#include <ostream>

#include "tests/src/ops/kernel_runner.h"

namespace spillway::test {
namespace {

constexpr float kEpsilon = 1e-3F;
constexpr float kMomentum = 0.25F;

// Each result needs a few dozen float operations on numbers up to about 10. The factor 1 /
// sqrt(variance + epsilon), up to 30 here, multiplies their errors. In sums of thousands, roundings
// of random sign grow more slowly than the sums.
constexpr double kTolerance = 2e-5;
// Tolerance for numbers that are floats in all precisions, as in expect_near().
constexpr double kFloatTolerance = (kIsCuda ? 2 : 1) * kTolerance;

struct BatchNormCase {
  TensorShape x;
  bool relu;
};

// Name that gtest looks for.
// NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(const BatchNormCase& c, std::ostream* out) {
  *out << c.x.batch << " x " << to_string(c.x.image) << (c.relu ? " with ReLU" : "");
}

class BatchNorm : public KernelRunner, public ::testing::WithParamInterface<BatchNormCase> {
 protected:
  // The results of a forward pass.
  struct Written {
    Block y;
    Block saved;
    Block mask;
  };

  [[nodiscard]] Values normalised(const Values& x, const Values& parameters,
                                  const Values& statistics) const {
    const auto epsilon = static_cast<double>(kEpsilon);
    const Values y = naive_batch_norm(shape_, epsilon, x, parameters, statistics);
    return relu_ ? naive_relu(y) : y;
  }
  // Computes y from x, with the statistics of x.
  [[nodiscard]] Values trained(const Values& x, const Values& parameters) const {
    return normalised(x, parameters, naive_statistics(shape_, x));
  }
  [[nodiscard]] Written run_forward(Block& x, Block& running, bool is_recomputation = false) {
    Block gamma_beta = parameters(spec_, parameters_);
    Written out{tensor(shape_), parameters(statistics_), saved_by(forward_)};
    std::vector<Block*> operands{&x, &gamma_beta, &out.y, &out.saved, &running};
    if (relu_) operands.push_back(&out.mask);
    run(forward_, operands, {}, is_recomputation);
    return out;
  }
  // dparameters are sums over the batch, with roundings that grow with their number.
  [[nodiscard]] double sum_tolerance_of_batch() const {
    return 2 * (kTolerance + sum_tolerance(shape_.elements() / shape_.image.channels));
  }

  const TensorShape shape_ = GetParam().x;
  const bool relu_ = GetParam().relu;
  const BatchNormForward forward_{
      .x = shape_, .epsilon = kEpsilon, .momentum = kMomentum, .relu = relu_};
  const BatchNormParameters spec_{.channels = shape_.image.channels};
  const BatchNormStatistics statistics_{.channels = shape_.image.channels};
  const Values x_ = random_values(shape_.elements(), 1);
  const Values dy_ = random_values(shape_.elements(), 2);
  const Values parameters_ = host::random_values(element_count(spec_), 3);
  // Positive, so that they are valid variances.
  const Values running_ = [this] {
    Values values = host::random_values(element_count(spec_), 4);
    for (double& value : values) value = static_cast<double>(static_cast<float>(value + 1.5));
    return values;
  }();
};

TEST_P(BatchNorm, NormalisesByTheStatisticsOfTheBatchAndSavesThem) {
  Block x = tensor(shape_, x_);
  Block running = parameters(statistics_, running_);
  Written out = run_forward(x, running);
  expect_near(values(shape_, out.y), trained(x_, parameters_), kTolerance);
  host::expect_near(values(statistics_, out.saved), naive_statistics(shape_, x_), kFloatTolerance);
}

// The unbiased variance of a single value per channel does not exist; the biased one, zero, is used
// instead.
TEST_P(BatchNorm, MovesTheRunningStatisticsTowardsTheUnbiasedOnes) {
  Block x = tensor(shape_, x_);
  Block running = parameters(statistics_, running_);
  (void)run_forward(x, running);
  const std::size_t channels = shape_.image.channels;
  const auto count = static_cast<double>(shape_.elements() / channels);
  Values expected = naive_statistics(shape_, x_);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (i >= channels) expected[i] *= count / std::max(count - 1, 1.0);
    expected[i] = 0.75 * running_[i] + 0.25 * expected[i];
  }
  host::expect_near(values(statistics_, running), expected, kFloatTolerance);
}

TEST_P(BatchNorm, RecomputationGivesTheSameBitsAndLeavesTheRunningStatistics) {
  Block x = tensor(shape_, x_);
  Block running = parameters(statistics_, running_);
  Written first = run_forward(x, running);
  const auto running_before = running.bytes();
  Written again = run_forward(x, running, /*is_recomputation=*/true);
  EXPECT_EQ(first.y.bytes(), again.y.bytes());
  EXPECT_EQ(first.saved.bytes(), again.saved.bytes());
  EXPECT_EQ(first.mask.bytes(), again.mask.bytes());
  EXPECT_EQ(running.bytes(), running_before);
}

TEST_P(BatchNorm, InferenceUsesTheRunningStatisticsInPlaceToo) {
  const BatchNormInference inference{.x = shape_, .epsilon = kEpsilon, .relu = relu_};
  Block x = tensor(shape_, x_);
  Block gamma_beta = parameters(spec_, parameters_);
  Block running = parameters(statistics_, running_);
  Block y = tensor(shape_);
  run(inference, {&x, &gamma_beta, &running, &y});
  expect_near(values(shape_, y), normalised(x_, parameters_, running_), kTolerance);
  run(inference, {&x, &gamma_beta, &running, &x});
  EXPECT_EQ(x.bytes(), y.bytes());
}

TEST_P(BatchNorm, GradientsAreTheSlopesOfTheForwardPass) {
  Block x = tensor(shape_, x_);
  Block running = parameters(statistics_, running_);
  Block gamma_beta = parameters(spec_, parameters_);
  Written out = run_forward(x, running);
  Block dy = tensor(shape_, dy_);
  Block dx = tensor(shape_);
  Block dparameters = parameters(spec_);
  const auto run_backward = [&](Block& to) {
    std::vector<Block*> operands{&x, &dy, &gamma_beta, &out.saved};
    if (relu_) operands.push_back(&out.mask);
    operands.insert(operands.end(), {&to, &dparameters});
    run(BatchNormBackward{.x = shape_, .epsilon = kEpsilon, .relu = relu_}, operands);
  };

  run_backward(dx);

  if (are_few(x_)) {
    const auto loss_of_x = [&](const Values& at) { return dot(dy_, trained(at, parameters_)); };
    const auto loss_of_w = [&](const Values& at) { return dot(dy_, trained(x_, at)); };
    expect_near(values(shape_, dx), numeric_gradient(x_, loss_of_x), kTolerance);
    host::expect_near(values(spec_, dparameters), numeric_gradient(parameters_, loss_of_w),
                      kFloatTolerance);
  }
  expect_same_on_host(shape_, dx, 2 * kTolerance);
  expect_same_on_host(spec_, dparameters, sum_tolerance_of_batch());

  const auto dparameters_before = dparameters.bytes();
  run_backward(dy);  // in place
  EXPECT_EQ(dy.bytes(), dx.bytes());
  EXPECT_EQ(dparameters.bytes(), dparameters_before);
}

// Values are 1000 +- 1: squares of 10^6 would leave a float no bit for a variance of 1/3. Distances
// from one of the values are at most 2, and as exact as the values: 2^-14.
TEST_P(BatchNorm, VarianceOutlivesALargeMean) {
  if (!has_float_tensors()) GTEST_SKIP() << "a bfloat16 of 1000 has steps of 4";
  Values far = random_values(shape_.elements(), 5);
  for (double& value : far) value = static_cast<double>(static_cast<float>(value + 1000));
  Block x = tensor(shape_, far);
  Block running = parameters(statistics_, running_);
  Written out = run_forward(x, running);
  const Values expected = naive_statistics(shape_, far);
  const Values actual = values(statistics_, out.saved);
  // Floats near 1000 have steps of 2^-14; oneDNN sums up to twelve thousand of them in float.
  const double of_mean = std::ldexp(1.0, kIsCuda ? -13 : -7);
  for (std::size_t c = 0; c < expected.size(); ++c) {
    const bool is_mean = c < shape_.image.channels;
    EXPECT_NEAR(actual[c], expected[c], is_mean ? of_mean : 1e-4) << "at " << c;
  }
}

// Channel counts that do and do not fill oneDNN's blocks and a pack.
INSTANTIATE_TEST_SUITE_P(
    Shapes, BatchNorm,
    ::testing::Values(BatchNormCase{{3, {3, 4, 5}}, false}, BatchNormCase{{3, {3, 4, 5}}, true},
                      BatchNormCase{{1, {6, 3, 5}}, true}, BatchNormCase{{3, {10, 3, 3}}, false},
                      BatchNormCase{{3, {16, 4, 3}}, true}, BatchNormCase{{3, {20, 3, 4}}, true},
                      BatchNormCase{{1, {33, 3, 3}}, false}, BatchNormCase{{9, {20, 1, 1}}, true},
                      BatchNormCase{{1, {16, 1, 1}}, false}));

// More groups of channels than a block of threads handles, and many chunks of rows.
INSTANTIATE_TEST_SUITE_P(LargeShapes, BatchNorm,
                         ::testing::Values(BatchNormCase{{8, {64, 28, 28}}, true},
                                           BatchNormCase{{16, {64, 28, 28}}, false},
                                           BatchNormCase{{4, {264, 7, 7}}, true},
                                           BatchNormCase{{9, {512, 1, 1}}, true}));

}  // namespace
}  // namespace spillway::test
