// A training step as a whole against PyTorch: what layer-wise tests cannot see, such as a part of a
// gradient that nobody adds, or the wrong block handed to the right kernel.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "tests/golden/golden_file.h"
#include "tests/golden/golden_training.h"
#include "tests/src/network_in_memory.h"
#include "tests/src/printed_memory_mode.h"

namespace spillway {
namespace {

using test::GoldenFile;
using test::GoldenTolerance;
using test::GoldenTraining;
using test::MakeNetwork;

// How far a block may be from PyTorch's 64-bit numbers, in norms of the block. 32-bit arithmetic
// errs by up to 2^-24 in each operation, and a sum of n terms by about sqrt(n) times that, as the
// errors are of either sign. The longest sums are those of a weight's gradient over 3 images of
// 12x12: sqrt(432) = 21. The longest way through a network, that through the second block of
// `residual`, is 16 tasks forward (5 convolutions, each with a batch norm, a pool, 2 sums, mean, fc
// and loss) and 16 back; at worst their errors add up: 32 * 21 * 2^-24 = 4e-5. (On one machine:
// 9e-7, and PyTorch in 32 bits 9e-7 too.)
constexpr double kRounding = 4e-5;
// Each of ten steps moves the weights by gradients that are off by that.
constexpr GoldenTolerance kTolerance{
    .one_step = kRounding, .losses = 10 * kRounding, .statistics = 10 * kRounding};
// The transforms of a Winograd convolution F(4,3) lose about twenty times as much as direct sums
// (Lavin and Gray, "Fast algorithms for convolutional neural networks", 2016).
constexpr GoldenTolerance kWinogradTolerance{
    .one_step = 20 * kRounding, .losses = 200 * kRounding, .statistics = 200 * kRounding};

MakeNetwork on_this_machine(MemoryMode memory, ConvolutionAlgorithm convolution) {
  return [=](nets::Network network, StepOptions options) {
    options.convolution = convolution;
    return std::make_unique<test::NetworkInMemory>(std::move(network), options, memory);
  };
}

class Golden : public testing::TestWithParam<std::tuple<std::string, MemoryMode>> {
 protected:
  const GoldenFile golden_ = GoldenFile::read(std::get<0>(GetParam()));
  const MakeNetwork make_ = on_this_machine(std::get<1>(GetParam()), ConvolutionAlgorithm::kDirect);
};

TEST_P(Golden, GradientsAreThoseOfPyTorch) { expect_golden_gradients(golden_, make_, kTolerance); }

TEST_P(Golden, TenLossesAreThoseOfPyTorch) { expect_golden_losses(golden_, make_, kTolerance); }

TEST_P(Golden, TenLossesWithOtherOptimizersAreThoseOfPyTorch) {
  expect_golden_losses_with_others(golden_, make_, kTolerance);
}

INSTANTIATE_TEST_SUITE_P(Networks, Golden,
                         testing::Combine(testing::Values("chain", "residual", "branches",
                                                          "joined"),
                                          testing::Values(MemoryMode::kResident,
                                                          MemoryMode::kManaged, MemoryMode::kCopy)),
                         [](const auto& given) {
                           return std::get<0>(given.param) + "_" +
                                  std::string{to_string(std::get<1>(given.param))};
                         });

// So that the tests above see memory at work. The other networks are so small that their largest
// task may need all of them near.
TEST(GoldenPlans, MoveWhatResidualNeedsWhereMemoryIsShort) {
  const GoldenFile golden = GoldenFile::read("residual");
  for (const MemoryMode memory : {MemoryMode::kManaged, MemoryMode::kCopy}) {
    const GoldenTraining training{golden, golden.sgd,
                                  on_this_machine(memory, ConvolutionAlgorithm::kDirect)};
    EXPECT_FALSE(training.plan().offloads.empty()) << to_string(memory);
  }
}

// Only `residual` has convolutions with channels enough for oneDNN's Winograd.
TEST(GoldenWinograd, GradientsAndLossesAreThoseOfPyTorch) {
  const GoldenFile golden = GoldenFile::read("residual");
  const MakeNetwork make = on_this_machine(MemoryMode::kResident, ConvolutionAlgorithm::kWinograd);
  const GoldenTraining training{golden, golden.sgd, make};
  int winograd = 0;
  for (const prefetch::TaskRun& run : training.plan().runs) {
    const auto& algorithm = training.graph()[run.task].algorithms[run.algorithm];
    winograd += algorithm.name == "winograd" ? 1 : 0;
  }
  if (winograd == 0) GTEST_SKIP() << "oneDNN has no Winograd convolution on this machine";
  expect_golden_gradients(golden, make, kWinogradTolerance);
  expect_golden_losses(golden, make, kWinogradTolerance);
}

}  // namespace
}  // namespace spillway
