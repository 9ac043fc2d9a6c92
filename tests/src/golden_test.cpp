// A training step as a whole against PyTorch: what layer-wise tests cannot see, such as a part of a
// gradient that nobody adds, or the wrong block handed to the right kernel.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "src/session.h"
#include "tests/golden/golden_file.h"
#include "tests/golden/networks.h"
#include "tests/src/network_in_memory.h"
#include "tests/src/state_numbers.h"

namespace spillway {
namespace {

using test::BlockNumbers;
using test::GoldenFile;

// How far a block may be from PyTorch's 64-bit numbers, in norms of the block. 32-bit arithmetic
// errs by up to 2^-24 in each operation, and a sum of n terms by about sqrt(n) times that, as the
// errors are of either sign. The longest sums are those of a weight's gradient over 3 images of
// 12x12: sqrt(432) = 21. The longest way through a network, that through the second block of
// `residual`, is 16 tasks forward (5 convolutions, each with a batch norm, a pool, 2 sums, mean, fc
// and loss) and 16 back; at worst their errors add up: 32 * 21 * 2^-24 = 4e-5. (On one machine:
// 9e-7, and PyTorch in 32 bits 9e-7 too.)
constexpr double kRounding = 4e-5;
// Each of ten steps moves the weights by gradients that are off by that.
constexpr double kRoundingOfTenSteps = 10 * kRounding;
// The transforms of a Winograd convolution F(4,3) lose about twenty times as much as direct sums
// (Lavin and Gray, "Fast algorithms for convolutional neural networks", 2016).
constexpr double kWinogradLoss = 20;

// One way to run a training.
struct Way {
  MemoryMode memory = MemoryMode::kResident;
  ConvolutionAlgorithm convolution = ConvolutionAlgorithm::kDirect;
};

// The training of a golden file.
class Training {
 public:
  Training(const GoldenFile& golden, const OptimizerOptions& optimizer, const Way& way)
      : golden_{golden},
        net_{test::golden_network(golden.name),
             {.batch = golden.batch, .convolution = way.convolution, .optimizer = optimizer},
             way.memory} {
    test::set_numbers(net_.session().state(), net_.training_step(),
                      golden.initial_state(net_.training_step()));
  }

  StepReport train(std::uint64_t step) { return train(step, golden_.learning_rate); }
  StepReport train(std::uint64_t step, float learning_rate) {
    const Batch batch = golden_.make_batch(net_.network(), step);
    return net_.session().train({.step = step, .learning_rate = learning_rate, .batch = &batch});
  }
  StepReport evaluate(std::uint64_t step) {
    const Batch batch = golden_.make_batch(net_.network(), step);
    return net_.session().evaluate({.batch = &batch});
  }
  [[nodiscard]] std::vector<BlockNumbers> state() {
    return test::numbers_of(net_.session().state(), net_.training_step());
  }
  [[nodiscard]] const prefetch::Plan& plan() const { return net_.training_plan(); }
  [[nodiscard]] const prefetch::TaskGraph& graph() const { return net_.training_step().graph; }

 private:
  const GoldenFile& golden_;
  test::NetworkInMemory net_;
};

// The norm of the difference, in norms of `wanted`.
double distance(std::span<const float> values, std::span<const double> wanted) {
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    difference += std::pow(static_cast<double>(values[i]) - wanted[i], 2);
    norm += std::pow(wanted[i], 2);
  }
  return std::sqrt(difference / norm);
}

// The blocks of `state` whose names end with `suffix` must be those of `wanted`.
void expect_near(const std::vector<BlockNumbers>& state, const std::string& suffix,
                 GoldenFile::Blocks wanted, double tolerance) {
  for (const BlockNumbers& block : state) {
    if (!block.name.ends_with(suffix)) continue;
    const auto golden = wanted.extract(block.name);
    ASSERT_FALSE(golden.empty()) << block.name;
    ASSERT_EQ(block.values.size(), golden.mapped().size()) << block.name;
    EXPECT_LT(distance(block.values, golden.mapped()), tolerance) << block.name;
  }
  EXPECT_TRUE(wanted.empty()) << wanted.begin()->first << " and maybe others are missing";
}

// With zero momentum before it and no weight decay, a step leaves the gradient as momentum.
void expect_golden_gradients(const GoldenFile& golden, const Way& way, double loss_of_accuracy) {
  const double tolerance = loss_of_accuracy * kRounding;
  Training training{golden, SgdOptions{.momentum = golden.sgd.momentum, .weight_decay = 0}, way};
  const StepReport report = training.train(0);
  EXPECT_NEAR(static_cast<double>(report.loss), golden.losses[0], tolerance * golden.losses[0]);
  GoldenFile::Blocks momenta;
  for (const auto& [name, numbers] : golden.gradients) momenta[name + ".momentum"] = numbers;
  expect_near(training.state(), ".momentum", momenta, tolerance);
  expect_near(training.state(), ".running", golden.running_after_first, tolerance);
}

// Losses are of the size of the first, which is what their errors are measured with.
void expect_golden_losses(const GoldenFile& golden, const Way& way, double loss_of_accuracy) {
  const double tolerance = loss_of_accuracy * kRoundingOfTenSteps;
  const double loss_tolerance = tolerance * golden.losses[0];
  ASSERT_EQ(golden.losses.size(), 10U);
  Training training{golden, golden.sgd, way};
  for (std::uint64_t step = 0; step < golden.losses.size(); ++step) {
    const auto loss = static_cast<double>(training.train(step).loss);
    EXPECT_NEAR(loss, golden.losses[step], loss_tolerance) << "step " << step;
  }
  expect_near(training.state(), ".running", golden.running_after_last, tolerance);
  const StepReport report = training.evaluate(golden.losses.size());
  const auto samples = static_cast<double>(golden.batch);
  EXPECT_NEAR(static_cast<double>(report.loss) / samples, golden.evaluation_loss, loss_tolerance);
  EXPECT_EQ(static_cast<double>(report.correct), golden.evaluation_correct);
}

class Golden : public testing::TestWithParam<std::tuple<const char*, MemoryMode>> {
 protected:
  const GoldenFile golden_ = GoldenFile::read(std::get<0>(GetParam()));
  const Way way_{.memory = std::get<1>(GetParam())};
};

TEST_P(Golden, GradientsAreThoseOfPyTorch) { expect_golden_gradients(golden_, way_, 1); }

TEST_P(Golden, TenLossesAreThoseOfPyTorch) { expect_golden_losses(golden_, way_, 1); }

TEST_P(Golden, TenLossesWithOtherOptimizersAreThoseOfPyTorch) {
  for (const test::OtherOptimizer& other : golden_.others) {
    ASSERT_EQ(other.losses.size(), 10U);
    Training training{golden_, other.options, way_};
    for (std::uint64_t step = 0; step < other.losses.size(); ++step) {
      const auto loss = static_cast<double>(training.train(step, other.learning_rate).loss);
      EXPECT_NEAR(loss, other.losses[step], kRoundingOfTenSteps * other.losses[0])
          << other.name << ", step " << step;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, Golden,
                         testing::Combine(testing::Values("chain", "residual", "branches",
                                                          "joined"),
                                          testing::Values(MemoryMode::kResident,
                                                          MemoryMode::kManaged, MemoryMode::kCopy)),
                         [](const auto& given) {
                           return std::string{std::get<0>(given.param)} + "_" +
                                  std::string{to_string(std::get<1>(given.param))};
                         });

// So that the tests above see memory at work. The other networks are so small that their largest
// task may need all of them near.
TEST(GoldenPlans, MoveWhatResidualNeedsWhereMemoryIsShort) {
  const GoldenFile golden = GoldenFile::read("residual");
  for (const MemoryMode memory : {MemoryMode::kManaged, MemoryMode::kCopy}) {
    const Training training{golden, golden.sgd, {.memory = memory}};
    EXPECT_FALSE(training.plan().offloads.empty()) << to_string(memory);
  }
}

// Only `residual` has convolutions with channels enough for oneDNN's Winograd.
TEST(GoldenWinograd, GradientsAndLossesAreThoseOfPyTorch) {
  const GoldenFile golden = GoldenFile::read("residual");
  const Way way{.convolution = ConvolutionAlgorithm::kWinograd};
  const Training training{golden, golden.sgd, way};
  int winograd = 0;
  for (const prefetch::TaskRun& run : training.plan().runs) {
    const auto& algorithm = training.graph()[run.task].algorithms[run.algorithm];
    winograd += algorithm.name == "winograd" ? 1 : 0;
  }
  if (winograd == 0) GTEST_SKIP() << "oneDNN has no Winograd convolution on this machine";
  expect_golden_gradients(golden, way, kWinogradLoss);
  expect_golden_losses(golden, way, kWinogradLoss);
}

}  // namespace
}  // namespace spillway
