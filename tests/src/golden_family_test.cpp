// A network of each family on small images against PyTorch: what it reads, how it is put together,
// what its gradients are and how it trains.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

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

}  // namespace
}  // namespace spillway
