// A network of each family on small images against PyTorch: what it reads, how it is put together,
// what its gradients are and how it trains.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "src/host/host_backend.h"
#include "tests/golden/family_golden.h"
#include "tools/golden/family_networks.h"

namespace spillway {
namespace {

using test::FamilyGolden;
using test::FamilyTraining;

// In units of the first loss, and of each norm. PyTorch in 32 bits is up to 1e-4 from the numbers
// in 64 bits that the file holds; make_family_golden prints how far.
constexpr double kLossTolerance = 1e-3;
constexpr double kNormTolerance = 1e-3;

class GoldenFamilies : public testing::TestWithParam<std::string> {
 protected:
  const FamilyGolden golden_ = FamilyGolden::read(GetParam());
};

TEST_P(GoldenFamilies, GradientNormsAreThoseOfPyTorch) {
  FamilyTraining training{golden_, {.momentum = golden_.sgd.momentum, .weight_decay = 0}};
  const double loss = training.train(0);
  EXPECT_NEAR(loss / golden_.losses[0], 1, kLossTolerance);
  const std::map<std::string, double> norms = training.momentum_norms();
  double worst = 0;
  for (const auto& [block, wanted] : golden_.gradient_norms) {
    ASSERT_TRUE(norms.contains(block)) << block;
    const double ratio = norms.at(block) / wanted;
    EXPECT_NEAR(ratio, 1, kNormTolerance) << block;
    worst = std::max(worst, std::abs(ratio - 1));
  }
  RecordProperty("worst", std::to_string(worst));
}

// The first ones of the file.
TEST_P(GoldenFamilies, FourLossesAreThoseOfPyTorch) {
  ASSERT_EQ(golden_.losses.size(), 10U);
  FamilyTraining training{golden_, golden_.sgd};
  double worst = 0;
  for (std::uint64_t step = 0; step < 4; ++step) {
    const double difference = (training.train(step) - golden_.losses[step]) / golden_.losses[0];
    EXPECT_NEAR(difference, 0, kLossTolerance) << "step " << step;
    worst = std::max(worst, std::abs(difference));
  }
  RecordProperty("worst", std::to_string(worst));
}

std::string word(const testing::TestParamInfo<std::string>& given) {
  std::string name = given.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '-' || c == ':' || c == ','; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(OfTheCatalogue, GoldenFamilies,
                         testing::ValuesIn(golden::family_network_names()), word);

TEST(GoldenFamiliesFile, HasEachNetwork) {
  std::vector<std::string> networks = golden::family_network_names();
  std::sort(networks.begin(), networks.end());
  EXPECT_EQ(FamilyGolden::names(), networks);
}

// Transformers of each family in bf16 against PyTorch under autocast: what their gradients are and
// how they train.

// How far losses and norms of gradients may be from PyTorch's, in units of what rounding to
// bfloat16 does to PyTorch's own: their distance from those in 64 bits. Two roundings that know
// nothing of each other differ by sqrt(2) of one. (On one machine: losses 0.80, 1.14, 0.67 and
// 1.52; norms 0.89, 1.61, 0.97 and 0.87; the same bits with one thread and with emulated
// instructions. Of mistakes that were tried, layer norms that cut off instead of rounding make up
// to 4.3, layer norms that sum in bfloat16 2.9, weights that are kept in bfloat16 2.3.)
constexpr double kBf16Tolerance = 2;
// Losses in fp32 are 1e-6 from those in 64 bits at most; in bf16 they are not.
constexpr double kFp32Rounding = 1e-5;

// The norm of the difference, in norms of `wanted`.
double distance(const std::vector<double>& values, const std::vector<double>& wanted) {
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    difference += std::pow(values[i] - wanted[i], 2);
    norm += std::pow(wanted[i], 2);
  }
  return std::sqrt(difference / norm);
}

class GoldenBf16 : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (host::bf16_support() == host::Bf16Support::kNone) {
      GTEST_SKIP() << "this processor does not compute in bf16";
    }
  }

  const FamilyGolden golden_ = FamilyGolden::read_bf16(GetParam());
};

TEST_P(GoldenBf16, GradientNormsAreThoseOfPyTorch) {
  const SgdOptions undecayed{.momentum = golden_.sgd.momentum, .weight_decay = 0};
  FamilyTraining training{golden_, undecayed, Precision::kBf16};
  training.train(0);
  const std::map<std::string, double> norms = training.momentum_norms();
  ASSERT_EQ(norms.size(), golden_.gradient_norms.size());
  std::vector<double> ours;
  std::vector<double> wanted;
  for (const auto& [block, norm] : golden_.gradient_norms) {
    ASSERT_TRUE(norms.contains(block)) << block;
    ours.push_back(norms.at(block));
    wanted.push_back(norm);
  }
  const double found = distance(ours, wanted) / golden_.norm_rounding;
  EXPECT_LT(found, kBf16Tolerance);
  RecordProperty("found", std::to_string(found));
}

TEST_P(GoldenBf16, TenLossesAreThoseOfPyTorch) {
  ASSERT_EQ(golden_.losses.size(), 10U);
  FamilyTraining training{golden_, golden_.sgd, Precision::kBf16};
  std::vector<double> losses;
  for (std::uint64_t step = 0; step < golden_.losses.size(); ++step) {
    losses.push_back(training.train(step));
  }
  const double found = distance(losses, golden_.losses) / golden_.loss_rounding;
  EXPECT_LT(found, kBf16Tolerance);
  RecordProperty("found", std::to_string(found));
  const double rounding = distance(losses, FamilyGolden::read(GetParam()).losses);
  EXPECT_GT(rounding, kFp32Rounding) << "these were not computed in bf16";
}

INSTANTIATE_TEST_SUITE_P(OfTransformers, GoldenBf16,
                         testing::Values("small-gpt", "small-llama", "small-bert", "small-vit"),
                         [](const auto& given) {
                           return std::string{given.param}.replace(5, 1, "_");
                         });

}  // namespace
}  // namespace spillway
