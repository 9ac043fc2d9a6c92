#include "src/bench/turn.h"

#include <gtest/gtest.h>

#include <vector>

namespace spillway {
namespace {

using std::chrono::seconds;

Turn turn(int begin, int end, double step) {
  const std::chrono::steady_clock::time_point start;
  return {.begin = start + seconds{begin}, .end = start + seconds{end}, .step = Seconds{step}};
}

// Resident runs at 0, 60, 120, ... seconds, ten seconds each, on a machine that slows down.
const std::vector<Turn> kResident{turn(0, 10, 1.0), turn(60, 70, 1.1), turn(120, 130, 1.2),
                                  turn(180, 190, 1.3), turn(240, 250, 1.4)};

TEST(StepAbout, IsTheMedianOfTheThreeNearestRuns) {
  EXPECT_EQ(step_about(std::vector{turn(10, 20, 9)}, kResident), Seconds{1.1});
  EXPECT_EQ(step_about(std::vector{turn(131, 140, 9)}, kResident), Seconds{1.2});
  EXPECT_EQ(step_about(std::vector{turn(250, 260, 9)}, kResident), Seconds{1.3});
}

// From 70 to 170 the runs at 120 (meanwhile), 60 (0 s before) and 180 (10 s after) are nearest; by
// their ends it would be 120, 180 and 240.
TEST(StepAbout, MeasuresWhatLiesBetweenTheRuns) {
  EXPECT_EQ(step_about(std::vector{turn(70, 170, 9)}, kResident), Seconds{1.2});
}

TEST(StepAbout, IsNotLedAstrayByOneDisturbedRun) {
  std::vector<Turn> resident = kResident;
  resident[2].step = Seconds{3};
  EXPECT_EQ(step_about(std::vector{turn(131, 140, 9)}, resident), Seconds{1.3});
}

TEST(StepAbout, IsAboutAllTurns) {
  const std::vector both{turn(10, 20, 9), turn(250, 260, 9)};
  EXPECT_EQ(step_about(both, kResident), Seconds{1.2});  // of 1.0, 1.1, 1.2, 1.2, 1.3, 1.4
}

TEST(StepAbout, TakesWhatThereIs) {
  EXPECT_EQ(step_about(std::vector{turn(250, 260, 9)}, std::vector{turn(0, 10, 1)}), Seconds{1});
  EXPECT_EQ(step_about({}, kResident), Seconds{1.2});
}

}  // namespace
}  // namespace spillway
