#include <ostream>

#include "tests/src/host/kernel_runner.h"
#include "tests/src/host/naive_layers.h"
#include "tests/src/host/numeric_gradient.h"

namespace spillway::host {
namespace {

constexpr float kEpsilon = 1e-3F;
constexpr float kMomentum = 0.25F;

// Each result is a few dozen float operations on numbers up to about 10, and 1 / sqrt(variance +
// epsilon), up to 30 here, multiplies their errors.
constexpr double kTolerance = 2e-5;

struct Case {
  TensorShape x;
  bool relu;
};

// Gtest looks for this name.
// NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.x.batch << " x " << c.x.image.channels << "x" << c.x.image.height << "x"
       << c.x.image.width << (c.relu ? " with ReLU" : "");
}

class BatchNorm : public KernelRunner, public testing::WithParamInterface<Case> {
 protected:
  [[nodiscard]] BatchNormForward forward() const {
    return {.x = shape_, .epsilon = kEpsilon, .momentum = kMomentum, .relu = relu_};
  }
  [[nodiscard]] Block mask() const { return Block{backend().saved_bytes(forward())}; }
  [[nodiscard]] Values normalised(const Values& x, const Values& parameters,
                                  const Values& statistics) const {
    const auto epsilon = static_cast<double>(kEpsilon);
    const Values y = naive_batch_norm(shape_, epsilon, x, parameters, statistics);
    return relu_ ? naive_relu(y) : y;
  }
  // y from x, through the statistics of x.
  [[nodiscard]] Values trained(const Values& x, const Values& parameters) const {
    return normalised(x, parameters, naive_statistics(shape_, x));
  }
  void run_forward(Block& x, Block& y, Block& saved, Block& running, Block& mask,
                   bool is_recomputation = false) {
    Block gamma_beta = parameters(spec_, parameters_);
    std::vector<Block*> operands{&x, &gamma_beta, &y, &saved, &running};
    if (relu_) operands.push_back(&mask);
    run(forward(), operands, {}, is_recomputation);
  }

  const TensorShape shape_ = GetParam().x;
  const bool relu_ = GetParam().relu;
  const BatchNormParameters spec_{.channels = shape_.image.channels};
  const BatchNormStatistics statistics_{.channels = shape_.image.channels};
  const Values x_ = random_values(shape_.elements(), 1);
  const Values dy_ = random_values(shape_.elements(), 2);
  const Values parameters_ = random_values(element_count(spec_), 3);
  // Positive, so that they can be variances.
  const Values running_ = [this] {
    Values values = random_values(element_count(spec_), 4);
    for (double& value : values) value = static_cast<double>(static_cast<float>(value + 1.5));
    return values;
  }();
};

TEST_P(BatchNorm, NormalisesByTheStatisticsOfTheBatchAndSavesThem) {
  Block x = tensor(shape_, x_);
  Block y = tensor(shape_);
  Block saved = parameters(statistics_);
  Block running = parameters(statistics_, running_);
  Block bits = mask();
  run_forward(x, y, saved, running, bits);
  expect_near(values(shape_, y), trained(x_, parameters_), kTolerance);
  expect_near(values(statistics_, saved), naive_statistics(shape_, x_), kTolerance);
}

TEST_P(BatchNorm, MovesTheRunningStatisticsTowardsTheUnbiasedOnes) {
  Block x = tensor(shape_, x_);
  Block y = tensor(shape_);
  Block saved = parameters(statistics_);
  Block running = parameters(statistics_, running_);
  Block bits = mask();
  run_forward(x, y, saved, running, bits);
  const std::size_t channels = shape_.image.channels;
  const std::size_t values_each = shape_.elements() / channels;
  const auto count = static_cast<double>(values_each);
  Values expected = naive_statistics(shape_, x_);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (i >= channels) expected[i] *= count / (count - 1);
    expected[i] = 0.75 * running_[i] + 0.25 * expected[i];
  }
  expect_near(values(statistics_, running), expected, kTolerance);
}

TEST_P(BatchNorm, RecomputationGivesTheSameBitsAndLeavesTheRunningStatistics) {
  Block x = tensor(shape_, x_);
  Block running = parameters(statistics_, running_);
  Block y = tensor(shape_);
  Block saved = parameters(statistics_);
  Block bits = mask();
  run_forward(x, y, saved, running, bits);
  const auto running_before = running.bytes();
  Block y_again = tensor(shape_);
  Block saved_again = parameters(statistics_);
  Block bits_again = mask();
  run_forward(x, y_again, saved_again, running, bits_again, /*is_recomputation=*/true);
  EXPECT_EQ(y.bytes(), y_again.bytes());
  EXPECT_EQ(saved.bytes(), saved_again.bytes());
  EXPECT_EQ(bits.bytes(), bits_again.bytes());
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
  Block gamma_beta = parameters(spec_, parameters_);
  Block y = tensor(shape_);
  Block saved = parameters(statistics_);
  Block running = parameters(statistics_, running_);
  Block bits = mask();
  run_forward(x, y, saved, running, bits);
  Block dy = tensor(shape_, dy_);
  Block dx = tensor(shape_);
  Block dparameters = parameters(spec_);
  const auto run_backward = [&](Block& to) {
    std::vector<Block*> operands{&x, &dy, &gamma_beta, &saved};
    if (relu_) operands.push_back(&bits);
    operands.insert(operands.end(), {&to, &dparameters});
    run(BatchNormBackward{.x = shape_, .epsilon = kEpsilon, .relu = relu_}, operands);
  };

  run_backward(dx);

  const auto loss_of_x = [&](const Values& at) { return dot(dy_, trained(at, parameters_)); };
  const auto loss_of_w = [&](const Values& at) { return dot(dy_, trained(x_, at)); };
  expect_near(values(shape_, dx), numeric_gradient(x_, loss_of_x), kTolerance);
  expect_near(values(spec_, dparameters), numeric_gradient(parameters_, loss_of_w), kTolerance);

  const auto dparameters_before = dparameters.bytes();
  run_backward(dy);  // in place
  EXPECT_EQ(dy.bytes(), dx.bytes());
  EXPECT_EQ(dparameters.bytes(), dparameters_before);
}

INSTANTIATE_TEST_SUITE_P(Shapes, BatchNorm,
                         testing::Values(Case{{3, {3, 4, 5}}, false}, Case{{3, {3, 4, 5}}, true},
                                         Case{{1, {6, 3, 5}}, true}, Case{{3, {10, 3, 3}}, false},
                                         Case{{3, {16, 4, 3}}, true}, Case{{3, {20, 3, 4}}, true},
                                         Case{{1, {33, 3, 3}}, false},
                                         Case{{9, {20, 1, 1}}, true}));

}  // namespace
}  // namespace spillway::host
