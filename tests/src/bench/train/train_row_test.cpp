#include "src/bench/train/train_row.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/src/bench/timing_of.h"

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

}  // namespace
}  // namespace spillway
