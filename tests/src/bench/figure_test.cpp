#include "src/bench/figure.h"

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

TEST(Figure, HasTheMiddleAndTheEndsOfItsRuns) {
  const Figure figure = samples_of({5, 1, 3}).figure();

  EXPECT_EQ(figure.median.count(), 3);
  EXPECT_EQ(figure.least.count(), 1);
  EXPECT_EQ(figure.most.count(), 5);
  EXPECT_EQ(figure.runs, 3U);
}

TEST(Figure, OfAnEvenNumberOfRunsHasTheMeanOfTheMiddleTwo) {
  EXPECT_EQ(samples_of({4, 1, 2, 100}).figure().median.count(), 3);
}

// Distances from the median 10 are 2, 1, 0, 1, 90; their median is 1: a tenth, whatever the 100 is.
TEST(Figure, DeviatesByTheMedianDistanceFromItsMedian) {
  EXPECT_DOUBLE_EQ(samples_of({8, 9, 10, 11, 100}).figure().deviation, 0.1);
  EXPECT_DOUBLE_EQ(samples_of({8, 9, 10, 11, 1000}).figure().deviation, 0.1);
}

TEST(Figure, OfNoTimeDoesNotDeviate) { EXPECT_EQ(samples_of({0, 0, 0}).figure().deviation, 0); }

TEST(Figure, WantsARun) { EXPECT_THROW(static_cast<void>(Samples{}.figure()), um::ContractError); }

TEST(Samples, HaveSettledWhenTheyDeviateLittleAndAreEnough) {
  const Settling settling{.least_runs = 3, .deviation = 0.1};

  EXPECT_FALSE(samples_of({}, settling).are_settled());
  EXPECT_FALSE(samples_of({10, 10}, settling).are_settled());
  EXPECT_TRUE(samples_of({9, 10, 11}, settling).are_settled());
  EXPECT_FALSE(samples_of({8, 10, 12}, settling).are_settled());
}

TEST(FigureJson, HasTheFieldsOfTheFormat) {
  const nlohmann::json json = to_json(samples_of({2, 2}).figure());

  EXPECT_EQ(json, (nlohmann::json{{"median", 2.0},
                                  {"least", 2.0},
                                  {"most", 2.0},
                                  {"deviation", 0.0},
                                  {"runs", 2},
                                  {"settled", false}}));
}

}  // namespace
}  // namespace spillway
