#include "src/bench/repetition.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <vector>

#include "src/run/executor.h"
#include "um/error.h"

namespace spillway {
namespace {

// Runs that take the times given, over and over, on a clock that only they move.
class Script {
 public:
  explicit Script(std::vector<double> times) : times_{std::move(times)} {}

  TimingSummary measure(const Repetition& repetition) {
    return spillway::measure(
        [this](RepetitionPhase phase) {
          if (phase == RepetitionPhase::kWarmUp) ++warm_ups_;
          const Seconds time{times_[runs_++ % times_.size()]};
          now_ += std::chrono::duration_cast<std::chrono::nanoseconds>(time);
          if (runs_ == stop_after_) stop_.request_stop();
          return time;
        },
        repetition, stop_.get_token(), [this] { return now_; });
  }
  void stop_after(std::size_t runs) { stop_after_ = runs; }

  [[nodiscard]] std::size_t runs() const { return runs_; }
  [[nodiscard]] std::size_t warm_ups() const { return warm_ups_; }

 private:
  std::vector<double> times_;
  std::size_t runs_ = 0;
  std::size_t warm_ups_ = 0;
  std::size_t stop_after_ = 0;
  std::stop_source stop_;
  std::chrono::steady_clock::time_point now_;
};

TEST(Measure, EndsAsSoonAsRunsHaveSettled) {
  Script script{{1}};
  const TimingSummary timing =
      script.measure({.warm_ups = 0, .settling = {.min_runs = 4}, .max_time = Seconds{100}});

  EXPECT_TRUE(timing.settled);
  EXPECT_EQ(script.runs(), 4U);
}

// All alike, but the clock reaches 20 seconds only after the twentieth run; looked at first then.
TEST(Measure, DoesNotTrustRunsOfTooLittleTime) {
  Script script{{1}};
  const TimingSummary timing = script.measure({.warm_ups = 0,
                                               .settling = {.min_runs = 4},
                                               .min_time = Seconds{20},
                                               .max_time = Seconds{100}});

  EXPECT_TRUE(timing.settled);
  EXPECT_EQ(script.runs(), 20U);
}

// 13 times 1, 2, 3, then 2: the middle of all distances is 0 from the 53rd run on; an eighth after
// the 51st, where it was looked at last, is the 57th.
TEST(Measure, LooksAtManyRunsSeldom) {
  std::vector<double> times;
  for (int i = 0; i < 13; ++i) times.insert(times.end(), {1, 2, 3});
  times.resize(200, 2);
  Script script{times};
  const TimingSummary timing =
      script.measure({.warm_ups = 0, .max_runs = 200, .max_time = Seconds{900}});

  EXPECT_TRUE(timing.settled);
  EXPECT_EQ(timing.runs, 57U);
}

TEST(Measure, DoesNotCountRunsThatWarmUp) {
  Script script{{50, 40, 1, 1, 1}};
  const TimingSummary timing = script.measure(
      {.warm_ups = 2, .settling = {.min_runs = 3}, .max_runs = 9, .max_time = Seconds{1000}});

  EXPECT_EQ(script.warm_ups(), 2U);
  EXPECT_EQ(timing.runs, 3U);
  EXPECT_EQ(timing.max.count(), 1);
}

// 1, 2, 3, 1, 2, ...: the median distance from the median 2 is half of it or a quarter.
TEST(Measure, GivesUpAfterTheMostRuns) {
  Script script{{1, 2, 3}};
  const TimingSummary timing =
      script.measure({.warm_ups = 0, .max_runs = 8, .max_time = Seconds{1000}});

  EXPECT_FALSE(timing.settled);
  EXPECT_EQ(timing.runs, 8U);
}

// After 1 + 2 + 1 + 2 seconds no further run begins; the warm-up's 1 second is one of them.
TEST(Measure, GivesUpAfterTheMostTime) {
  Script script{{1, 2}};
  const TimingSummary timing =
      script.measure({.warm_ups = 1, .max_runs = 100, .max_time = Seconds{6}});

  EXPECT_FALSE(timing.settled);
  EXPECT_EQ(timing.runs, 3U);
}

TEST(Measure, CountsOneRunHoweverLongTheWarmUpTook) {
  Script script{{100}};

  EXPECT_EQ(script.measure({.warm_ups = 1, .max_time = Seconds{1}}).runs, 1U);
}

TEST(Measure, BeginsNoRunAfterItWasStopped) {
  Script script{{1, 2}};
  script.stop_after(3);

  EXPECT_THROW(static_cast<void>(script.measure({.max_time = Seconds{1000}})), Interrupted);
  EXPECT_EQ(script.runs(), 3U);
}

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
