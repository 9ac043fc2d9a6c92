#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "src/bench/train/train_comparison.h"
#include "src/bench/train/train_row.h"
#include "src/bench/train/train_trial.h"
#include "tests/src/bench/timing_of.h"
#include "tests/src/small_training.h"

namespace spillway {
namespace {

using nlohmann::json;
using um::Bytes;

// ResNet-18 at batch 16 under 40 %.
TrainRow row(const std::string& strategy) {
  return {.key = {.series = TrainSeries::kBudget,
                  .net = "resnet18",
                  .image_size = 224,
                  .batch = 16,
                  .strategy = find_train_strategy(strategy),
                  .budget = "40%",
                  .budget_bytes = Bytes{400},
                  .resident_bytes = Bytes{1000}}};
}

TrainRow measured(const std::string& strategy, double seconds, double deviation = 0.01) {
  TrainRow result = row(strategy);
  result.measurement = {.step = test::timing_of(seconds, true, deviation),
                        .near_peak = Bytes{399},
                        .bytes_in = Bytes{70},
                        .bytes_out = Bytes{80},
                        .faults = 9,
                        .stalled = Seconds{0.125}};
  result.resident = {.time = Seconds{2}, .is_measured = true};
  result.predicted = Seconds{2};
  return result;
}

TEST(TrainRow, TellsItsStepOverOthers) {
  const TrainRow joint = measured("joint", 2.5);

  EXPECT_DOUBLE_EQ(joint.images_per_second().value(), 6.4);        // 16 / 2.5
  EXPECT_DOUBLE_EQ(joint.ratio().value(), 1.25);                   // 2.5 / 2
  EXPECT_DOUBLE_EQ(joint.predicted_over_measured().value(), 0.8);  // 2 / 2.5
}

TEST(TrainRow, ThatFailedTellsNothing) {
  const TrainRow failed = row("joint");

  EXPECT_FALSE(failed.images_per_second());
  EXPECT_FALSE(failed.ratio());
  EXPECT_FALSE(failed.predicted_over_measured());
}

TEST(TrainSeries, HasTheNameThatBenchFilesGiveIt) {
  EXPECT_EQ(to_string(TrainSeries::kBatch), "batch");
  EXPECT_EQ(to_string(TrainSeries::kBudget), "budget");
  EXPECT_EQ(to_string(TrainSeries::kPlanner), "planner");
}

TEST(TrainRowJson, HasTheFieldsOfTheFormat) {
  json expected = json::parse(R"({
    "series": "budget", "net": "resnet18", "image_size": 224, "batch": 16, "strategy": "copy",
    "memory": "copy", "planner": "joint", "budget": "40%", "budget_bytes": 400,
    "resident_bytes": 1000, "images_per_second": 6.4, "ratio": 1.25, "resident_seconds": 2.0,
    "resident_is": "measured", "predicted_seconds": 2.0, "near_peak_bytes": 399, "bytes_in": 70,
    "bytes_out": 80, "faults": 9, "stalled_seconds": 0.125})");
  expected["seconds"] = to_json(test::timing_of(2.5, true, 0.01));

  EXPECT_EQ(to_json(measured("copy", 2.5)), expected);
}

TEST(TrainRowJson, OfAFailureHasNoFigures) {
  TrainRow failed = row("resident");
  failed.failure = "too small";

  EXPECT_EQ(to_json(failed), json::parse(R"({
    "series": "budget", "net": "resnet18", "image_size": 224, "batch": 16, "strategy": "resident",
    "memory": "resident", "planner": null, "budget": "40%", "budget_bytes": 400,
    "resident_bytes": 1000, "failed": "too small"})"));
}

TEST(TrainRowJson, SaysThatTheResidentStepWasSimulated) {
  TrainRow joint = measured("joint", 2.5);
  joint.resident->is_measured = false;

  EXPECT_EQ(to_json(joint).at("resident_is"), "simulated");
}

TEST(Winner, IsTheFastest) {
  const std::vector<TrainRow> rows{measured("on-demand", 4), measured("joint", 2.5),
                                   measured("copy", 3)};

  EXPECT_EQ(find_winners(rows), (std::vector<bool>{false, true, false}));
}

// 2.5 and 2.6 are 0.1 apart; 3 % of the one and 2 % of the other are 0.075 + 0.052.
TEST(Winner, IsNotAloneWhenOthersAreAsFastWithinTheirDeviations) {
  const std::vector<TrainRow> rows{measured("joint", 2.5, 0.03), measured("copy", 2.6, 0.02),
                                   measured("capacity", 2.7, 0.02)};

  EXPECT_EQ(find_winners(rows), (std::vector<bool>{true, true, false}));
}

TrainRow unsettled(const std::string& strategy, double seconds) {
  TrainRow result = measured(strategy, seconds, 1);
  result.measurement->step.settled = false;
  return result;
}

// As after one round each.
TEST(Winner, IsNobodyWhereNothingHasSettled) {
  const std::vector<TrainRow> rows{unsettled("joint", 2.5), unsettled("copy", 9)};

  EXPECT_EQ(find_winners(rows), (std::vector<bool>{false, false}));
}

// The step that all ratios are over took from 0 to 4 s.
TEST(Winner, IsNobodyWhereTheResidentStepHasNotSettled) {
  std::vector<TrainRow> rows{measured("joint", 2.5), measured("copy", 4), unsettled("resident", 2)};
  EXPECT_EQ(find_winners(rows), (std::vector<bool>{false, false, false}));

  rows[2].key.batch = 32;  // another step's
  EXPECT_EQ(find_winners(rows), (std::vector<bool>{true, false, false}));
}

// "on-demand" took between 2 and 4 s.
TEST(Winner, IsNobodyWhereWhatHasNotSettledMayBeFaster) {
  std::vector<TrainRow> rows{measured("joint", 2.5), measured("copy", 3),
                             unsettled("on-demand", 3)};
  rows[2].measurement->step.min = Seconds{2};
  EXPECT_EQ(find_winners(rows), (std::vector<bool>{false, false, false}));

  rows[2].measurement->step.min = Seconds{2.6};
  EXPECT_EQ(find_winners(rows), (std::vector<bool>{true, false, false}));
}

// The machine was slower when "copy" ran, and the resident step with it.
TEST(Winner, IsTheFastestBesideItsResidentStep) {
  std::vector<TrainRow> rows{measured("joint", 2.5), measured("copy", 2.8)};
  rows[0].resident = {.time = Seconds{2}, .is_measured = true};
  rows[1].resident = {.time = Seconds{2.5}, .is_measured = true};

  EXPECT_EQ(find_winners(rows), (std::vector<bool>{false, true}));
}

TEST(Winner, IsNeitherResidentNorFailedNorWithoutRival) {
  const std::vector<TrainRow> rows{measured("resident", 1), row("capacity"),
                                   measured("joint", 2.5)};

  EXPECT_EQ(find_winners(rows), (std::vector<bool>{false, false, false}));
}

TEST(Winner, IsOfItsOwnBudgetAndBatch) {
  std::vector<TrainRow> rows{measured("joint", 2), measured("copy", 3), measured("joint", 4),
                             measured("copy", 5)};
  rows[2].key.budget = rows[3].key.budget = "25%";
  EXPECT_EQ(find_winners(rows), (std::vector<bool>{true, false, true, false}));

  rows[2].key.budget = "40%";
  rows[2].key.batch = 8;  // nobody else is there
  EXPECT_EQ(find_winners(rows), (std::vector<bool>{true, false, false, false}));
}

prefetch::NearNeed need(std::uint64_t smallest, std::uint64_t resident) {
  return {.resident = Bytes{resident},
          .peak_with_workspace = Bytes{resident},
          .smallest = Bytes{smallest}};
}

TEST(Batches, LieAroundTheOneGiven) {
  EXPECT_EQ(batches_around(16, false), (std::vector<std::size_t>{4, 8, 16, 24, 32}));
  EXPECT_EQ(batches_around(16, true), (std::vector<std::size_t>{8, 16, 32}));
}

TEST(Batches, AreRoundedDownAndDiffer) {
  EXPECT_EQ(batches_around(1, false), (std::vector<std::size_t>{1, 2}));
  EXPECT_EQ(batches_around(2, false), (std::vector<std::size_t>{1, 2, 3, 4}));
  EXPECT_EQ(batches_around(6, false), (std::vector<std::size_t>{1, 3, 6, 9, 12}));
  EXPECT_EQ(batches_around(7, false), (std::vector<std::size_t>{1, 3, 7, 10, 14}));
  EXPECT_EQ(batches_around(1, true), (std::vector<std::size_t>{1, 2}));
  EXPECT_EQ(batches_around(5, true), (std::vector<std::size_t>{2, 5, 10}));
}

TEST(Batches, HaveTheOneGiven) {
  for (std::size_t batch = 1; batch < 20; ++batch) {
    for (const bool few : {false, true}) {
      const std::vector<std::size_t> batches = batches_around(batch, few);
      EXPECT_EQ(std::ranges::count(batches, batch), 1) << batch;
      EXPECT_TRUE(std::ranges::is_sorted(batches)) << batch;
    }
  }
}

TEST(BudgetAtMiddle, FitsTheBatchBeforeAndNotTheMiddleOne) {
  const std::vector<prefetch::NearNeed> needs{need(10, 100), need(20, 200), need(40, 400)};

  EXPECT_EQ(budget_at_middle(needs, 1), Bytes{150});  // half way from 100 to 200
  EXPECT_EQ(budget_at_middle(needs, 2), Bytes{300});
}

TEST(BudgetAtMiddle, LetsTheLargestBatchRunWhereItCan) {
  const std::vector<prefetch::NearNeed> tight{need(50, 100), need(90, 200), need(180, 400)};
  const std::vector<prefetch::NearNeed> hopeless{need(50, 100), need(90, 200), need(210, 400)};

  EXPECT_EQ(budget_at_middle(tight, 1), Bytes{180});
  EXPECT_EQ(budget_at_middle(hopeless, 1), Bytes{150});
}

TEST(BudgetAtMiddle, OfTheFirstBatchIsHalfItsNeed) {
  EXPECT_EQ(budget_at_middle(std::vector{need(50, 200)}, 0), Bytes{100});
  EXPECT_EQ(budget_at_middle(std::vector{need(50, 200), need(80, 400)}, 0), Bytes{100});
}

class Series : public testing::Test {
 protected:
  const TrainSubject& add_subject(std::size_t batch) {
    return comparison_.add(std::make_unique<TrainSubject>(
        "small", test::small_network(), *context_.backend, StepOptions{.batch = batch}));
  }
  // "batch strategy budget" of each row.
  [[nodiscard]] std::vector<std::string> rows() const {
    std::vector<std::string> texts;
    for (const auto& [key, trial] : comparison_.planned_rows()) {
      texts.push_back(std::to_string(key.batch) + " " + key.strategy.name + " " + key.budget);
    }
    return texts;
  }

  ExecutionContext context_ = test::small_context();
  TrainComparison comparison_{Bytes{1 << 30U}, {}};
};

TEST_F(Series, OverBatchesHasOneBudget) {
  const std::vector<const TrainSubject*> subjects{&add_subject(2), &add_subject(4)};
  const std::vector<TrainStrategy> strategies{find_train_strategy("resident"),
                                              find_train_strategy("joint")};

  add_batch_series(comparison_, subjects, strategies, {.text = "1 KiB", .size = Bytes{1024}});

  EXPECT_EQ(rows(), (std::vector<std::string>{"2 resident 1 KiB", "2 joint 1 KiB",
                                              "4 resident 1 KiB", "4 joint 1 KiB"}));
}

TEST_F(Series, OverBudgetsHasOneResidentRow) {
  const TrainSubject& subject = add_subject(2);
  const std::vector<TrainStrategy> strategies{find_train_strategy("joint"),
                                              find_train_strategy("copy")};

  add_budget_series(comparison_, TrainSeries::kBudget, subject, strategies,
                    std::vector<NamedBudget>{{.text = "60%", .size = Bytes{600}},
                                             {.text = "40%", .size = Bytes{400}}});

  EXPECT_EQ(rows(), (std::vector<std::string>{"2 resident 100%", "2 joint 60%", "2 copy 60%",
                                              "2 joint 40%", "2 copy 40%"}));
  EXPECT_EQ(comparison_.planned_rows()[0].key.budget_bytes, subject.workload().need().resident);
}

TEST_F(Series, ShareWhatIsRunTwice) {
  const TrainSubject& subject = add_subject(2);
  const std::vector<TrainStrategy> strategies{find_train_strategy("joint")};
  const NamedBudget budget{.text = "40%", .size = Bytes{400}};

  add_batch_series(comparison_, std::vector<const TrainSubject*>{&subject}, strategies, budget);
  add_budget_series(comparison_, TrainSeries::kBudget, subject, strategies,
                    std::vector<NamedBudget>{budget});

  EXPECT_EQ(comparison_.planned_rows().size(), 4U);
  EXPECT_EQ(comparison_.trials().size(), 2U);
}

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
