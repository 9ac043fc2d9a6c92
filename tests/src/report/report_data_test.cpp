#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "src/report/report_input.h"
#include "src/report/report_page.h"
#include "tests/refusal.h"
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

std::string complaint_about_trace(const json& trace) {
  return test::refusal([&] { return read(trace); });
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

TEST(TimelineData, NamesThePlaceOfWhatIsDamaged) {
  json trace = kTrace;
  trace["traceEvents"][0].erase("dur");
  EXPECT_EQ(complaint_about_trace(trace), "step.json: traceEvents[0].dur is missing");
  trace = kTrace;
  trace["traceEvents"][2]["args"]["bytes"] = -1;
  EXPECT_EQ(complaint_about_trace(trace),
            "step.json: traceEvents[2].args.bytes is no whole number from 0 up");
  EXPECT_EQ(complaint_about_trace({{"traceEvents", 3}}), "step.json: traceEvents is no array");
}

}  // namespace
}  // namespace spillway::test
