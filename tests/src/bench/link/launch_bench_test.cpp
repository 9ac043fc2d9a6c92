#include "src/bench/link/launch_bench.h"

#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>
#include <vector>

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
