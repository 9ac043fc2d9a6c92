#include "src/report/report_data.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/src/report/sample_bench_file.h"
#include "tests/src/report/sample_training.h"

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

}  // namespace
}  // namespace spillway::test
