#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "prefetch/files/json.h"
#include "src/report/comparison.h"
#include "src/report/report_input.h"
#include "src/report/report_page.h"
#include "src/report/verdict.h"
#include "tests/src/report/sample_files.h"

namespace spillway::test {
namespace {

using nlohmann::json;

ReportInput bench(const std::string& name, const std::string& machine, const char* kind = "train") {
  return {.name = name,
          .kind = ReportInputKind::kBench,
          .content = bench_file(kind, json::array(), machine)};
}

TEST(ReportData, KeepsMachinesApart) {
  const json data = report_data(
      {.files = {bench("a", "one"), bench("b", "two"), bench("c", "one")}, .left_out = {"d"}}, "1");
  ASSERT_EQ(data.at("machines").size(), 2U);
  const json& one = data.at("machines")[0];
  EXPECT_EQ(one.at("machine").at("id"), "one");
  ASSERT_EQ(one.at("benches").size(), 2U);
  EXPECT_EQ(one.at("benches")[0].at("file"), "a");
  EXPECT_EQ(one.at("benches")[1].at("file"), "c");
  EXPECT_EQ(data.at("machines")[1].at("benches")[0].at("file"), "b");
  EXPECT_EQ(data.at("left_out"), json::array({"d"}));
}

TEST(ReportData, KeepsDevicesOfAMachineApart) {
  ReportInput other = bench("b", "one");
  other.content["machine"]["device"] = "cuda:0 Some GPU";
  EXPECT_EQ(
      report_data({.files = {bench("a", "one"), other}, .left_out = {}}, "1").at("machines").size(),
      2U);
}

// Another load at the start is the same machine.
TEST(ReportData, TakesABusyMachineForTheSame) {
  ReportInput later = bench("b", "one");
  later.content["machine"]["load_at_start"] = 7.5;
  const json data = report_data({.files = {bench("a", "one"), later}, .left_out = {}}, "1");
  ASSERT_EQ(data.at("machines").size(), 1U);
  EXPECT_EQ(data.at("machines")[0].at("benches")[1].at("load"), 7.5);
}

TEST(ReportData, LabelsRowsAndComparesThem) {
  ReportInput input = bench("a", "one");
  input.content["rows"] = json::array(
      {training_row("joint", 40, 1.1), failed_row("copy", 40), training_row("on-demand", 40, 3)});
  const json data = report_data({.files = {input}, .left_out = {}}, "1");
  const json& shown = data.at("machines")[0].at("benches")[0];
  EXPECT_EQ(shown.at("rows")[1].at("label"), "copy");
  EXPECT_EQ(shown.at("comparison").at("columns"), json::array({"joint", "copy", "on-demand"}));
  EXPECT_EQ(shown.at("comparison").at("lines")[0].at("rows"), json::array({0, 1, 2}));
  EXPECT_EQ(shown.at("comparison").at("lines")[0].at("fastest"), json::array({0}));
}

// The middle one stands in the series over batches, too.
TEST(ReportData, SaysWhichRowsAreRunsOfTheirOwn) {
  ReportInput input = bench("a", "one");
  input.content["rows"] =
      json::array({training_row("joint", 40, 1.1), training_row("joint", 40, 1.1),
                   training_row("copy", 40, 2)});
  input.content["rows"][1]["series"] = "batch";
  const json data = report_data({.files = {input, bench("b", "one", "link")}, .left_out = {}}, "1");
  const json& benches = data.at("machines")[0].at("benches");
  EXPECT_EQ(benches[0].at("runs"), json::array({0, 2}));
  EXPECT_TRUE(benches[1].at("runs").is_null());
}

// 3 bytes go out; what is clean does not travel.
TEST(ReportData, SumsUpPlans) {
  const ReportInput plan{.name = "p",
                         .kind = ReportInputKind::kPlan,
                         .content = json::parse(R"({"planner": "joint", "residency": "planned",
                           "budget_bytes": 9, "runs": [{"task": "a"}, {"task": "a", "recomputation": true}],
                           "offloads": [{"size_bytes": 3}, {"size_bytes": 5, "clean": true}],
                           "prefetches": [{"size_bytes": 4}]})")};
  const json data = report_data({.files = {plan}, .left_out = {}}, "1");
  EXPECT_EQ(data.at("plans")[0], (json{{"file", "p"},
                                       {"planner", "joint"},
                                       {"residency", "planned"},
                                       {"budget_bytes", 9},
                                       {"runs", 2},
                                       {"run_again", 1},
                                       {"offload_bytes", 3},
                                       {"prefetch_bytes", 4}}));
}

TEST(ReportData, HasTheCurvesOfTrainings) {
  const ReportInput run{.name = "run.json",
                        .kind = ReportInputKind::kTraining,
                        .training = read_training_log(step_line(1, 2.5), "run.json")};
  const json data = report_data({.files = {run}, .left_out = {}}, "1");
  ASSERT_EQ(data.at("trainings").size(), 1U);
  EXPECT_EQ(data.at("trainings")[0].at("file"), "run.json");
  EXPECT_EQ(data.at("trainings")[0].at("curves").at("loss").size(), 1U);
}

TEST(ScriptJson, HoldsNothingThatEndsAScript) {
  const json data{{"</script>", "<!-- <script>"}};
  const std::string text = script_json(data);
  EXPECT_EQ(text.find('<'), std::string::npos);
  EXPECT_EQ(json::parse(text), data);
}

TEST(ScriptJson, IsAscii) {
  const json data = "a line\u2028end, 1.04×";
  const std::string text = script_json(data);
  EXPECT_EQ(text, R"("a line\u2028end, 1.04\u00d7")");
  EXPECT_EQ(json::parse(text), data);
}

TEST(ScriptJson, TakesNamesThatAreNoText) {
  EXPECT_EQ(script_json(std::string{"a\xff"}), R"("a\ufffd")");
}

TEST(Page, HoldsTheDataOnceAndNoPlaceholder) {
  const std::string page = make_page({{"file", "{{script}} here"}});
  const std::string data = R"({"file":"{{script}} here"})";
  const std::size_t at = page.find(data);
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ(page.find("{{data}}"), std::string::npos);
  EXPECT_EQ(page.find("{{style}}"), std::string::npos);
  EXPECT_EQ(page.find("{{script}}", at + data.size()), std::string::npos);
}

TEST(Page, BringsAllItNeedsAndTheLicence) {
  const std::string page = make_page(json::object());
  for (const char* reference : {"src=\"", "href=\"http", "@import", "url(http"}) {
    EXPECT_EQ(page.find(reference), std::string::npos) << reference;
  }
  EXPECT_NE(page.find("Redistribution and use in source and binary forms"), std::string::npos);
  EXPECT_TRUE(page.starts_with("<!doctype html>"));
}

const json kTrace = json::parse(R"json({"traceEvents": [
  {"ph": "X", "name": "conv1.forward", "pid": 1, "tid": 1, "ts": 2.5, "dur": 4,
   "args": {"algorithm": "direct", "phase": "forward"}},
  {"ph": "X", "name": "before conv1.forward", "pid": 1, "tid": 2, "ts": 0, "dur": 2.5, "args": {}},
  {"ph": "X", "name": "conv1.y", "pid": 1, "tid": 3, "ts": 1, "dur": 2,
   "args": {"offset": 0, "bytes": 64}},
  {"ph": "X", "name": "of another program", "pid": 1, "tid": 9, "ts": 1, "dur": 2},
  {"ph": "C", "name": "near memory (bytes)", "pid": 1, "ts": 3,
   "args": {"in use": 70, "budget": 90}},
  {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "predicted"}},
  {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": "compute"}},
  {"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "args": {"name": "waiting"}},
  {"ph": "M", "name": "thread_name", "pid": 1, "tid": 3,
   "args": {"name": "offload (near to far)"}}],
  "spillway": {"planner": "joint", "budget_bytes": 512, "on_demand": false, "near": {
    "1": [{"name": "conv1.y", "purpose": "saved", "bytes_from": [[0, 64], [3, 0]]}]}}})json");

json read(const json& trace) {
  const prefetch::JsonFile file{trace.dump(), "step.json"};
  return timeline_data(file.root());
}

TEST(TimelineData, SortsSpansByLane) {
  const json data = read(kTrace);
  EXPECT_EQ(data.at("budget_bytes"), 512);
  ASSERT_EQ(data.at("processes").size(), 1U);
  const json& process = data.at("processes")[0];
  EXPECT_EQ(process.at("name"), "predicted");
  EXPECT_EQ(process.at("compute"),
            json::parse(R"([[2.5, 4.0, "conv1.forward", "direct", "forward"]])"));
  EXPECT_EQ(process.at("stalls"), json::parse(R"([[0.0, 2.5, "before conv1.forward"]])"));
  EXPECT_EQ(process.at("offload"), json::parse(R"([[1.0, 2.0, "conv1.y", 64]])"));
  EXPECT_EQ(process.at("prefetch"), json::array());
  EXPECT_EQ(process.at("curve"), json::parse("[[3.0, 70.0]]"));
  EXPECT_EQ(process.at("near")[0].at("bytes_from"), json::parse("[[0.0, 64], [3.0, 0]]"));
}

// As they were written before "spillway" stood in them.
TEST(TimelineData, DoesWithoutWhoHoldsNearMemory) {
  json trace = kTrace;
  trace.erase("spillway");
  const json data = read(trace);
  EXPECT_TRUE(data.at("budget_bytes").is_null());
  EXPECT_EQ(data.at("processes")[0].at("near"), json::array());
}

// Their counter had whole MiB.
TEST(TimelineData, ReadsTheCurvesOfEarlierTraces) {
  json trace = kTrace;
  trace["traceEvents"][4]["name"] = "near memory (MiB)";
  trace["traceEvents"][4]["args"]["in use"] = 3;
  EXPECT_EQ(read(trace).at("processes")[0].at("curve"), json::parse("[[3.0, 3145728.0]]"));
}

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

// The run needed 1010 bytes instead of the planned 1000. Budgets are parts of the latter.
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

// It may be the fastest one, so the report names none.
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
