#include <tuple>

#include "tests/src/cuda/backend_runner.h"
#include "tests/src/host/naive_layers.h"

namespace spillway::cuda {
namespace {

constexpr float kEpsilon = 1e-3F;
constexpr float kMomentum = 0.25F;

struct NormCase {
  TensorShape x;
  bool relu;
};

class CudaBatchNorm : public BackendRunner,
                      public ::testing::WithParamInterface<std::tuple<Precision, NormCase>> {
 protected:
  CudaBatchNorm() : BackendRunner{std::get<0>(GetParam())} {}

  [[nodiscard]] Operand mask() {
    return bytes(host().backend().saved_bytes(forward_), backend().saved_bytes(forward_));
  }
  [[nodiscard]] Operand gamma_beta() {
    return parameters(spec_, host::random_values(element_count(spec_), 3));
  }
  // Positive, so that they can be variances.
  [[nodiscard]] Operand running() {
    Values values = host::random_values(element_count(statistics_), 4);
    for (double& value : values) value = static_cast<double>(static_cast<float>(value + 1.5));
    return parameters(statistics_, values);
  }
  [[nodiscard]] Operand input() { return tensor(shape_, random(shape_.elements(), 1)); }
  [[nodiscard]] std::vector<Operand*> with_mask(std::vector<Operand*> operands,
                                                Operand& mask) const {
    if (relu_) operands.push_back(&mask);
    return operands;
  }
  // Within both sides' errors: each is of a few dozen float operations on numbers up to about 10,
  // times 1 / sqrt(variance + epsilon), up to 30 here. In sums of thousands, roundings of random
  // sign add up to less than the values do.
  static constexpr double kTolerance = 2 * 2e-5;
  // dgamma and dbeta are sums over the batch, whose roundings grow with their number.
  [[nodiscard]] double sum_tolerance() const {
    return kTolerance + 2 * host::sum_tolerance(shape_.elements() / shape_.image.channels);
  }

  const TensorShape shape_ = std::get<1>(GetParam()).x;
  const bool relu_ = std::get<1>(GetParam()).relu;
  const BatchNormParameters spec_{.channels = shape_.image.channels};
  const BatchNormStatistics statistics_{.channels = shape_.image.channels};
  const BatchNormForward forward_{
      .x = shape_, .epsilon = kEpsilon, .momentum = kMomentum, .relu = relu_};
  const BatchNormBackward backward_{.x = shape_, .epsilon = kEpsilon, .relu = relu_};
};

TEST_P(CudaBatchNorm, TrainsAsTheHostDoesBothWays) {
  Operand x = input();
  Operand parameters = gamma_beta();
  Operand y = tensor(shape_);
  Operand saved = blank_parameters(statistics_);
  Operand moving = running();
  Operand bits = mask();
  const auto forward = with_mask({&x, &parameters, &y, &saved, &moving}, bits);
  run_on_host(forward_, forward);
  run_first(forward_, forward);
  expect_close(shape_, y, kTolerance);
  host::expect_near(values(statistics_, saved), host().values(statistics_, saved.host), kTolerance);
  host::expect_near(values(statistics_, moving), host().values(statistics_, moving.host),
                    kTolerance);

  Operand dy = tensor(shape_, random(shape_.elements(), 2));
  Operand dx = tensor(shape_);
  Operand gradient = blank_parameters(spec_);
  auto backward = with_mask({&x, &dy, &parameters, &saved}, bits);
  backward.insert(backward.end(), {&dx, &gradient});
  run_on_host(backward_, backward);
  run_first(backward_, backward);
  expect_close(shape_, dx, kTolerance);
  host::expect_near(values(spec_, gradient), host().values(spec_, gradient.host), sum_tolerance());

  const auto separate = dx.device.bytes();
  backward[backward.size() - 2] = &dy;  // in place
  run_first(backward_, backward);
  EXPECT_EQ(dy.device.bytes(), separate);
}

TEST_P(CudaBatchNorm, RecomputationGivesTheSameBitsAndLeavesTheRunningStatistics) {
  Operand x = input();
  Operand parameters = gamma_beta();
  Operand moving = running();
  Operand y = tensor(shape_);
  Operand saved = blank_parameters(statistics_);
  Operand bits = mask();
  run_first(forward_, with_mask({&x, &parameters, &y, &saved, &moving}, bits));
  const auto moved = moving.device.bytes();
  Operand y_again = tensor(shape_);
  Operand saved_again = blank_parameters(statistics_);
  Operand bits_again = mask();
  run_first(forward_, with_mask({&x, &parameters, &y_again, &saved_again, &moving}, bits_again),
            /*is_recomputation=*/true);
  EXPECT_EQ(y.device.bytes(), y_again.device.bytes());
  EXPECT_EQ(saved.device.bytes(), saved_again.device.bytes());
  EXPECT_EQ(bits.device.bytes(), bits_again.device.bytes());
  EXPECT_EQ(moving.device.bytes(), moved);
}

TEST_P(CudaBatchNorm, InferenceIsTheHostsInPlaceToo) {
  const BatchNormInference inference{.x = shape_, .epsilon = kEpsilon, .relu = relu_};
  Operand x = input();
  Operand parameters = gamma_beta();
  Operand statistics = running();
  Operand y = tensor(shape_);
  run_on_host(inference, {&x, &parameters, &statistics, &y});
  run_first(inference, {&x, &parameters, &statistics, &y});
  expect_close(shape_, y, kTolerance);
  run_first(inference, {&x, &parameters, &statistics, &x});
  EXPECT_EQ(x.device.bytes(), y.device.bytes());
}

// Values 1000 +- 1: squares of 10^6 would leave a float no bit of a variance of 1/3. Relative to a
// value of their own, distances are up to 2, exact to 2^-14 as the values are.
TEST_P(CudaBatchNorm, VarianceOutlivesALargeMean) {
  if (is_bf16()) GTEST_SKIP() << "a bfloat16 of 1000 has steps of 4";
  Values far = host::random_values(shape_.elements(), 5);
  for (double& value : far) value = static_cast<double>(static_cast<float>(value + 1000));
  Operand x = tensor(shape_, far);
  Operand parameters = gamma_beta();
  Operand y = tensor(shape_);
  Operand saved = blank_parameters(statistics_);
  Operand moving = running();
  Operand bits = mask();
  run_first(forward_, with_mask({&x, &parameters, &y, &saved, &moving}, bits));
  const Values expected = host::naive_statistics(shape_, far);
  const Values actual = values(statistics_, saved);
  for (std::size_t c = 0; c < expected.size(); ++c) {
    const bool is_mean = c < shape_.image.channels;
    // A float of 1000 has steps of 2^-14.
    EXPECT_NEAR(actual[c], expected[c], is_mean ? std::ldexp(1.0, -13) : 1e-4) << "at " << c;
  }
}

// Channels that fill groups of 8 and that do not, more groups than a block has, many chunks of
// rows, a single row.
INSTANTIATE_TEST_SUITE_P(Shapes, CudaBatchNorm,
                         ::testing::Combine(kAllPrecisions,
                                            ::testing::Values(NormCase{{3, {3, 4, 5}}, false},
                                                              NormCase{{3, {20, 3, 4}}, true},
                                                              NormCase{{8, {64, 28, 28}}, true},
                                                              NormCase{{16, {64, 28, 28}}, false},
                                                              NormCase{{4, {264, 7, 7}}, true},
                                                              NormCase{{9, {512, 1, 1}}, true},
                                                              NormCase{{1, {16, 1, 1}}, false})));

}  // namespace
}  // namespace spillway::cuda
