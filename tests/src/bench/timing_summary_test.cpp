#include "src/bench/timing_summary.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "um/error.h"

namespace spillway {
namespace {

Samples samples_of(std::initializer_list<double> times, const Settling& settling = {}) {
  Samples samples{settling};
  for (const double time : times) samples.add(Seconds{time});
  return samples;
}

TEST(TimingSummary, HasTheMiddleAndTheEndsOfItsRuns) {
  const TimingSummary timing = samples_of({5, 1, 3}).timing();

  EXPECT_EQ(timing.median.count(), 3);
  EXPECT_EQ(timing.min.count(), 1);
  EXPECT_EQ(timing.max.count(), 5);
  EXPECT_EQ(timing.runs, 3U);
}

TEST(TimingSummary, OfAnEvenNumberOfRunsHasTheMeanOfTheMiddleTwo) {
  EXPECT_EQ(samples_of({4, 1, 2, 100}).timing().median.count(), 3);
}

// Distances from the median 10 are 2, 1, 0, 1, 90; their median is 1: a tenth, whatever the 100 is.
TEST(TimingSummary, DeviatesByTheMedianDistanceFromItsMedian) {
  EXPECT_DOUBLE_EQ(samples_of({8, 9, 10, 11, 100}).timing().deviation, 0.1);
  EXPECT_DOUBLE_EQ(samples_of({8, 9, 10, 11, 1000}).timing().deviation, 0.1);
}

TEST(TimingSummary, OfNoTimeDoesNotDeviate) {
  EXPECT_EQ(samples_of({0, 0, 0}).timing().deviation, 0);
}

TEST(TimingSummary, WantsARun) {
  EXPECT_THROW(static_cast<void>(Samples{}.timing()), um::ContractError);
}

TEST(Samples, HaveSettledWhenTheyDeviateLittleAndAreEnough) {
  const Settling settling{.min_runs = 3, .deviation = 0.1};

  EXPECT_FALSE(samples_of({}, settling).are_settled());
  EXPECT_FALSE(samples_of({10, 10}, settling).are_settled());
  EXPECT_TRUE(samples_of({9, 10, 11}, settling).are_settled());
  EXPECT_FALSE(samples_of({8, 10, 12}, settling).are_settled());
}

TEST(TimingJson, HasTheFieldsOfTheFormat) {
  const nlohmann::json json = to_json(samples_of({2, 2}).timing());

  EXPECT_EQ(json, (nlohmann::json{{"median", 2.0},
                                  {"min", 2.0},
                                  {"max", 2.0},
                                  {"deviation", 0.0},
                                  {"runs", 2},
                                  {"settled", false}}));
}

}  // namespace
}  // namespace spillway
