#include "src/report/timeline_data.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/refusal.h"

namespace spillway {
namespace {

using nlohmann::json;

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

std::string complaint_about(const json& trace) {
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
  EXPECT_EQ(complaint_about(trace), "step.json: traceEvents[0].dur is missing");
  trace = kTrace;
  trace["traceEvents"][2]["args"]["bytes"] = -1;
  EXPECT_EQ(complaint_about(trace),
            "step.json: traceEvents[2].args.bytes is no whole number from 0 up");
  EXPECT_EQ(complaint_about({{"traceEvents", 3}}), "step.json: traceEvents is no array");
}

}  // namespace
}  // namespace spillway
