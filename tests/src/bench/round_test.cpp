#include <gtest/gtest.h>

#include <vector>

#include "src/bench/train/train_trial.h"

namespace spillway {
namespace {

Round round(int begin, int end, double step) {
  const std::chrono::steady_clock::time_point start;
  return {.begin = start + std::chrono::seconds{begin},
          .end = start + std::chrono::seconds{end},
          .step = Seconds{step}};
}

// Resident runs at 0, 60, 120, ... seconds, ten seconds each, on a machine that slows down.
const std::vector<Round> kResident{round(0, 10, 1.0), round(60, 70, 1.1), round(120, 130, 1.2),
                                   round(180, 190, 1.3), round(240, 250, 1.4)};

TEST(StepAbout, IsTheMedianOfTheThreeNearestRuns) {
  EXPECT_EQ(step_about(std::vector{round(10, 20, 9)}, kResident), Seconds{1.1});
  EXPECT_EQ(step_about(std::vector{round(131, 140, 9)}, kResident), Seconds{1.2});
  EXPECT_EQ(step_about(std::vector{round(250, 260, 9)}, kResident), Seconds{1.3});
}

// From 70 to 170 the runs at 120 (meanwhile), 60 (0 s before) and 180 (10 s after) are nearest; by
// their ends it would be 120, 180 and 240.
TEST(StepAbout, MeasuresWhatLiesBetweenTheRuns) {
  EXPECT_EQ(step_about(std::vector{round(70, 170, 9)}, kResident), Seconds{1.2});
}

TEST(StepAbout, IsNotLedAstrayByOneDisturbedRun) {
  std::vector<Round> resident = kResident;
  resident[2].step = Seconds{3};
  EXPECT_EQ(step_about(std::vector{round(131, 140, 9)}, resident), Seconds{1.3});
}

TEST(StepAbout, IsAboutAllTurns) {
  const std::vector both{round(10, 20, 9), round(250, 260, 9)};
  EXPECT_EQ(step_about(both, kResident), Seconds{1.2});  // of 1.0, 1.1, 1.2, 1.2, 1.3, 1.4
}

TEST(StepAbout, TakesWhatThereIs) {
  EXPECT_EQ(step_about(std::vector{round(250, 260, 9)}, std::vector{round(0, 10, 1)}), Seconds{1});
  EXPECT_EQ(step_about({}, kResident), Seconds{1.2});
}

TEST(WarmUp, EndsWhenAStepIsHardlyShorterThanTheOneBeforeIt) {
  EXPECT_FALSE(is_warm(2, Seconds{1}, Seconds{0.979}));
  EXPECT_TRUE(is_warm(2, Seconds{1}, Seconds{0.981}));
  EXPECT_TRUE(is_warm(3, Seconds{1}, Seconds{1.5}));
}

TEST(WarmUp, TakesTwoStepsAtLeastAndFiveAtMost) {
  EXPECT_FALSE(is_warm(1, Seconds{1}, Seconds{1}));
  EXPECT_FALSE(is_warm(4, Seconds{1}, Seconds{0.5}));
  EXPECT_TRUE(is_warm(5, Seconds{1}, Seconds{0.5}));
}

}  // namespace
}  // namespace spillway
