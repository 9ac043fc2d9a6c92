#include "src/report/comparison.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "prefetch/files/json.h"
#include "src/report/verdict.h"
#include "tests/src/report/sample_files.h"

namespace spillway::test {
namespace {

using nlohmann::json;

using Columns = std::vector<std::size_t>;

std::string label(const json& row) {
  return strategy_label(read_train_row(prefetch::JsonView{row, "row:"}));
}

Comparison compared(const json& rows) {
  std::vector<TrainRow> typed;
  for (const json& row : rows) typed.push_back(read_train_row(prefetch::JsonView{row, "row:"}));
  return compare(typed);
}

TEST(StrategyLabel, NamesTheMemoryWhereItIsNotTheUsualOne) {
  EXPECT_EQ(label(training_row("joint", 40, 1)), "joint");
  EXPECT_EQ(label(training_row("copy", 40, 1)), "copy");
  EXPECT_EQ(label(training_row("resident", 100, 1)), "resident");
  json row = training_row("vdnn_all", 40, 1);
  row["memory"] = "copy";
  EXPECT_EQ(label(row), "vdnn_all (copy)");
  row = training_row("copy", 40, 1);
  row["planner"] = "capacity";
  EXPECT_EQ(label(row), "capacity (copy)");
}

TEST(Comparison, HasALineABudgetFromTheLargestDown) {
  const Comparison table =
      compared(json::array({training_row("on-demand", 40, 3), training_row("joint", 40, 1.1),
                            training_row("joint", 60, 1.05), training_row("resident", 100, 1)}));
  EXPECT_EQ(table.columns, (std::vector<std::string>{"resident", "joint", "on-demand"}));
  ASSERT_EQ(table.lines.size(), 3U);
  EXPECT_EQ(table.lines[0].key.budget, "100%");
  EXPECT_EQ(table.lines[1].key.budget, "60%");
  EXPECT_EQ(table.lines[2].key.budget, "40%");
  EXPECT_EQ(table.lines[2].rows[1], 1U);
  EXPECT_EQ(table.lines[2].rows[2], 0U);
  EXPECT_FALSE(table.lines[2].rows[0].has_value());
}

// The run needed 1010 bytes where 1000 had been reckoned, of which the budgets are parts.
TEST(Comparison, PutsTheResidentRowOnItsHundredPercentLine) {
  json rows = json::array({training_row("resident", 100, 1), training_row("joint", 100, 1.01),
                           training_row("joint", 40, 1.5)});
  rows[0]["budget_bytes"] = 1010U;
  const Comparison table = compared(rows);
  ASSERT_EQ(table.lines.size(), 2U);
  EXPECT_EQ(table.lines[0].key.budget_bytes, um::Bytes{1000});
  EXPECT_EQ(table.lines[0].rows[0], 0U);
  EXPECT_EQ(table.lines[0].rows[1], 1U);
}

TEST(Comparison, PutsTheResidentRowOnTheLineOfItsOwnSeriesAlone) {
  json rows = json::array({training_row("resident", 100, 1), training_row("joint", 100, 1.01),
                           training_row("joint", 100, 1.02)});
  rows[0]["budget_bytes"] = 1010U;
  rows[1]["series"] = "batch";
  rows[2]["net"] = "vgg16";
  const Comparison table = compared(rows);
  ASSERT_EQ(table.lines.size(), 3U);
  EXPECT_EQ(table.lines[0].key.budget_bytes, um::Bytes{1010});
}

TEST(Comparison, KeepsNetworksBatchesAndSeriesApart) {
  json rows = json::array();
  for (int i = 0; i < 5; ++i) rows.push_back(training_row("joint", 40, 1));
  rows[1]["net"] = "vgg16";
  rows[2]["batch"] = 16U;
  rows[3]["image_size"] = 56U;
  rows[4]["series"] = "batch";
  EXPECT_EQ(compared(rows).lines.size(), 5U);
}

// 1.00 s ± 1 % and 1.05 s ± 1 % do not meet; with 3 % they do: 1.03 and 1.0185.
TEST(Comparison, CallsNoWinnerWithinTheSpread) {
  json rows = json::array({training_row("joint", 40, 1.0), training_row("copy", 40, 1.05),
                           training_row("capacity", 40, 2)});
  EXPECT_EQ(compared(rows).lines[0].fastest, (Columns{0}));
  rows[0]["seconds"] = timing(1.0, 0.03);
  rows[1]["seconds"] = timing(1.05, 0.03);
  EXPECT_EQ(compared(rows).lines[0].fastest, (Columns{0, 1}));
}

// One run has a deviation of zero, which says nothing.
TEST(Comparison, DoesNotTrustASingleRun) {
  json rows = json::array({training_row("joint", 40, 1.0), training_row("copy", 40, 1.05)});
  for (json& row : rows) row["seconds"] = timing(row["seconds"]["median"], 0, 1);
  EXPECT_EQ(compared(rows).lines[0].fastest, Columns{});
}

// It stands on another line, of 100 %.
TEST(Comparison, HasNoWinnerWhereTheResidentStepHasNotSettled) {
  json rows = json::array({training_row("joint", 40, 0.001), training_row("copy", 40, 0.002),
                           training_row("resident", 100, 1)});
  rows[2]["seconds"]["settled"] = false;
  const Comparison table = compared(rows);
  ASSERT_EQ(table.lines.size(), 2U);
  EXPECT_EQ(table.lines[1].fastest, Columns{});
  EXPECT_EQ(table.settled, (std::vector<bool>{false, false, false}));
}

TEST(Comparison, LetsNeitherResidentNorFailedStepsWin) {
  const Comparison table =
      compared(json::array({training_row("resident", 40, 1.0), failed_row("joint", 40),
                            training_row("copy", 40, 2), training_row("on-demand", 40, 3)}));
  EXPECT_EQ(table.lines[0].fastest, (Columns{2}));
}

TEST(Comparison, HasNoWinnerWithoutALoser) {
  const Comparison table =
      compared(json::array({training_row("resident", 40, 1.0), failed_row("joint", 40),
                            training_row("on-demand", 40, 3)}));
  EXPECT_EQ(table.lines[0].fastest, Columns{});
}

using Sentences = std::vector<std::string>;

Sentences said_of(const json& bench) { return verdict({bench, "bench:"}); }

TEST(Verdict, BeginsWithTheBudgetNearestFortyPercent) {
  json rows = json::array({training_row("joint", 60, 1.02), training_row("joint", 42, 1.04),
                           training_row("copy", 60, 1.05), training_row("copy", 42, 1.1),
                           training_row("on-demand", 42, 2), training_row("joint", 25, 1.2),
                           failed_row("copy", 25)});
  rows[4]["predicted_seconds"] = 1.86;  // 7 % less than 2
  EXPECT_EQ(said_of(bench_file("train", rows)),
            (Sentences{
                "lenet, batch 8, with 42 % of the memory it needs: joint takes 1.04× the resident "
                "step, copy 1.10× and on-demand 2.00×.",
                "lenet, batch 8, with 25 % of the memory it needs: joint takes 1.20× the resident "
                "step.",
                "joint is the fastest for lenet at batch 8 at all 2 budgets.",
                "All 6 predictions are within 10 % of the measurement; the furthest is off by −7 % "
                "(on-demand, lenet, batch 8, 42%).",
                "1 of 7 cases could not be run; the table says why."}));
}

TEST(Verdict, CountsTiesApart) {
  const Sentences said = said_of(bench_file(
      "planners", json::array({training_row("joint", 60, 1.0), training_row("copy", 60, 1.01),
                               training_row("joint", 40, 1.0), training_row("copy", 40, 1.5)})));
  ASSERT_GE(said.size(), 2U);
  EXPECT_EQ(said[1],
            "joint is the fastest for lenet at batch 8 at all 2 budgets, 1 of them within the "
            "spread.");
}

// Over a resident step of 1 s ± 100 %, "0.00×" would say nothing.
TEST(Verdict, ComparesNothingWithAResidentStepThatHasNotSettled) {
  json rows = json::array({training_row("joint", 40, 0.001), training_row("copy", 40, 0.002),
                           training_row("resident", 100, 1)});
  for (json& row : rows) row.erase("predicted_seconds");
  rows[2]["seconds"]["settled"] = false;
  rows[2]["seconds"]["deviation"] = 1.0;
  EXPECT_EQ(said_of(bench_file("train", rows)),
            (Sentences{"lenet, batch 8: the resident step has not settled (±100 % in 5 runs), so "
                       "nothing is compared with it; measure again while the machine does nothing "
                       "else, with more --rounds."}));
}

TEST(Verdict, LeavesOutWhatHasNotSettled) {
  json rows = json::array({training_row("joint", 40, 1.1), training_row("copy", 40, 1.3),
                           training_row("capacity", 40, 1.5)});
  for (json& row : rows) row.erase("predicted_seconds");
  rows[2]["seconds"]["settled"] = false;
  EXPECT_EQ(said_of(bench_file("train", rows)),
            (Sentences{"lenet, batch 8, with 40 % of the memory it needs: joint takes 1.10× the "
                       "resident step and copy 1.30×.",
                       "1 of 3 figures has not settled (~), and is not compared."}));
}

// It may be the fastest one, so that none is called that.
TEST(Verdict, CallsNobodyTheFastestBesideWhatHasNotSettled) {
  json rows = json::array({training_row("joint", 60, 1.1), training_row("copy", 60, 1.3),
                           training_row("capacity", 60, 1.2), training_row("joint", 40, 1.1),
                           training_row("copy", 40, 1.3), training_row("capacity", 40, 1.2)});
  for (const std::size_t unsettled : {2, 5}) {
    rows[unsettled]["seconds"]["settled"] = false;
    rows[unsettled]["seconds"]["min"] = 0.5;
  }
  for (const std::string& sentence : said_of(bench_file("train", rows))) {
    EXPECT_EQ(sentence.find("is the fastest"), std::string::npos) << sentence;
  }
}

TEST(Verdict, SaysWhenPredictionsAreOff) {
  json rows = json::array({training_row("joint", 40, 1.0), training_row("copy", 40, 2.0)});
  rows[1]["predicted_seconds"] = 2.5;
  EXPECT_EQ(said_of(bench_file("train", rows)).back(),
            "1 of 2 predictions is within 10 % of the measurement; the furthest is off by +25 % "
            "(copy, lenet, batch 8, 40%).");
}

// A batch that stands in both series was run once: 4 predictions of 8 rows, and what failed is
// that the resident step is more than the budget of the batches, and copies within it.
TEST(Verdict, CountsRunsOfTwoSeriesOnce) {
  json rows = json::array({failed_row("resident", 40), training_row("joint", 40, 1.2),
                           failed_row("copy", 40), training_row("resident", 100, 1),
                           training_row("joint", 40, 1.2), failed_row("copy", 40),
                           training_row("joint", 60, 1.1), training_row("copy", 60, 1.3)});
  for (std::size_t i = 0; i < 3; ++i) rows[i]["series"] = "batch";
  rows[0]["failed"] = "all of it resident needs more than the budget";
  const Sentences said = said_of(bench_file("train", rows));
  ASSERT_GE(said.size(), 2U);
  EXPECT_TRUE(said[said.size() - 2].starts_with("All 4 predictions are within")) << said.back();
  EXPECT_EQ(said.back(), "2 of 6 cases could not be run; the table says why.");
}

// Batches below the budget are resident in both series.
TEST(Verdict, CountsTheResidentRunOnceWhateverTheBudget) {
  json rows = json::array({training_row("resident", 150, 1), training_row("resident", 100, 1)});
  rows[0]["series"] = "batch";
  EXPECT_EQ(said_of(bench_file("train", rows)).back(),
            "The only prediction is off by −5 % (resident, lenet, batch 8, 150%).");
}

TEST(Verdict, SaysHowFarBatchesGo) {
  json rows = json::array({training_row("resident", 100, 1), training_row("joint", 100, 1),
                           training_row("joint", 50, 1), training_row("on-demand", 50, 2)});
  for (json& row : rows) row["series"] = "batch";
  rows[2]["batch"] = 16U;  // 8 images a second resident, 6 at batch 16
  rows[2]["seconds"] = timing(16.0 / 6);
  rows[3]["batch"] = 16U;
  rows[3]["seconds"] = timing(16.0 / 4);
  EXPECT_EQ(said_of(bench_file("train", rows)).front(),
            "lenet fits up to batch 8 in near memory; at batch 16 joint makes 6 images a second, "
            "75 % of the best that fits.");
}

TEST(Verdict, RanksTheLinkAndThePaging) {
  json rows = json::array({link_row(), link_row(), link_row()});
  rows[1]["way"] = "pinned_copy";
  rows[1]["seconds"] = timing(4096 / 8e9);
  rows[2]["bytes"] = 8192U;  // which pinned copies were not tried with
  EXPECT_EQ(said_of(bench_file("link", rows)),
            (Sentences{"From far to near, 4.00 KiB at a time: pinned copy 8 GB/s and prefetch 4.1 "
                       "GB/s."}));
  rows = json::array({paging_row("faults", 2, 9), paging_row("faults", 2, 12),
                      paging_row("prefetched", 2, 3), paging_row("faults", 0.5, 1)});
  EXPECT_EQ(said_of(bench_file("paging", rows)),
            (Sentences{"Touching 2 times as much as near memory holds, over touching plain memory, "
                       "depending on the pattern: faults 9 to 12× and prefetched 3×."}));
}

TEST(Verdict, SaysNothingOfNothing) {
  for (const char* bench : {"train", "planners", "link", "paging"}) {
    EXPECT_EQ(said_of(bench_file(bench, json::array())), Sentences{}) << bench;
  }
}

}  // namespace
}  // namespace spillway::test
