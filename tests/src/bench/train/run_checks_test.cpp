#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "src/bench/train/train_trial.h"

namespace spillway {
namespace {

using um::Bytes;

RunRecord good(const std::string& name) {
  return {.name = name,
          .budget = Bytes{100},
          .near_peak = Bytes{100},
          .losses = {2.5F, 2.25F},
          .repeats_itself = true};
}

TEST(RunChecks, FindsNothingWhereAllIsAsItMustBe) {
  const RunRecord resident = good("resident");

  EXPECT_TRUE(complaints_about(good("joint"), &resident).empty());
}

TEST(RunChecks, NamesNearMemoryBeyondTheBudget) {
  RunRecord joint = good("joint");
  joint.near_peak = Bytes{101};

  EXPECT_EQ(
      complaints_about(joint, nullptr),
      std::vector<std::string>{"joint, took 101 B of near memory, more than its budget of 100 B"});
}

TEST(RunChecks, NamesOtherLosses) {
  const RunRecord resident = good("resident");
  RunRecord joint = good("joint");
  joint.losses[1] = std::nextafter(joint.losses[1], 3.0F);

  EXPECT_EQ(complaints_about(joint, &resident),
            std::vector<std::string>{"joint, had other losses than resident"});
  EXPECT_TRUE(complaints_about(joint, nullptr).empty()) << "where plans choose algorithms";
}

TEST(RunChecks, NamesRoundsThatDiffer) {
  const RunRecord resident = good("resident");
  RunRecord joint = good("joint");
  joint.repeats_itself = false;

  EXPECT_EQ(complaints_about(joint, &resident),
            std::vector<std::string>{"joint, had other losses in one round than in another"});
}

TEST(Losses, AreTheSameBitForBit) {
  const float nan = std::numeric_limits<float>::quiet_NaN();

  EXPECT_TRUE(are_same_losses({1, nan}, {1, nan}));
  EXPECT_FALSE(are_same_losses({0.0F}, {-0.0F}));
  EXPECT_TRUE(are_same_losses({1, 2}, {1})) << "of an interrupted round";
}

}  // namespace
}  // namespace spillway
