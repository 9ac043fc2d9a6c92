#include "src/bench/link/launch_bench.h"

#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "src/bench/train/train_trial.h"
#include "src/run/executor.h"
#include "tests/src/bench/timing_of.h"
#include "tests/src/small_training.h"

namespace spillway::test {
namespace {

using namespace um::literals;

constexpr std::array kWays{Way::kPageableCopy, Way::kPrefetch, Way::kPinnedCopy};

// Of 10 ms each, which is longer than a launch and shorter than the time that is given.
const um::ManagedOptions kSlowLink{.link = {.bandwidth = um::Bandwidth{400.0 * 1024 * 1024}}};

TEST(BenchLaunches, HasARowAloneAndOneBesideEachWayOfMovingOut) {
  ExecutionContext context = small_context();
  std::vector<LaunchRow> rows;
  bench_launches(context, {.ways = kWays, .size = 4_MiB, .space = kSlowLink, .max_launches = 20},
                 [&](const LaunchRow& row) { rows.push_back(row); }, {});
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].beside, std::nullopt);
  EXPECT_EQ(rows[0].size, 0_B);
  EXPECT_EQ(rows[1].beside, Way::kPrefetch);
  EXPECT_EQ(rows[2].beside, Way::kPinnedCopy);
  EXPECT_EQ(rows[2].size, 4_MiB);
  for (const LaunchRow& row : rows) {
    EXPECT_GE(row.call.runs, 20U);
    EXPECT_LE(row.call.median, row.whole.median);
  }
}

TEST(BenchLaunches, EndWhenTheUserStopsThem) {
  ExecutionContext context = small_context();
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THROW(bench_launches(
                   context, {.ways = kWays, .size = 4_MiB, .space = kSlowLink},
                   [](const LaunchRow&) {}, stop.get_token()),
               Interrupted);
}

TEST(LaunchRow, HasTheFieldsOfTheFormat) {
  LaunchRow row{.beside = {}, .size = {}, .call = timing_of(0.25), .whole = timing_of(0.5)};
  EXPECT_EQ(to_json(row), (nlohmann::json{{"beside", nullptr},
                                          {"bytes", 0},
                                          {"call_seconds", to_json(timing_of(0.25))},
                                          {"seconds", to_json(timing_of(0.5))}}));
  row.beside = Way::kPrefetch;
  EXPECT_EQ(to_json(row).at("beside"), "prefetch");
}

}  // namespace
}  // namespace spillway::test

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
