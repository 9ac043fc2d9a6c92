#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "src/dropin/planning/spillway_plan.h"

namespace {

using nlohmann::json;

// Three blocks of 4 MiB; the first two wait between forward and backward tasks. The last task holds
// two blocks, 8 MiB. All blocks together take 12 MiB.
const char* const kTrace = R"({"format": "spillway-trace", "version": 1, "name": "toy", "tasks": [
  {"name": "f1", "reads": [], "writes": [1], "duration_ns": 1000000, "workspace_bytes": 0},
  {"name": "f2", "reads": [1], "writes": [2], "duration_ns": 1000000, "workspace_bytes": 0},
  {"name": "f3", "reads": [2], "writes": [3], "duration_ns": 1000000, "workspace_bytes": 0},
  {"name": "b3", "reads": [3], "writes": [], "duration_ns": 1000000, "workspace_bytes": 0},
  {"name": "b2", "reads": [2], "writes": [], "duration_ns": 1000000, "workspace_bytes": 0},
  {"name": "b1", "reads": [1], "writes": [], "duration_ns": 1000000, "workspace_bytes": 0}],
  "data": [{"id": 1, "bytes": 4194304, "kind": "tensor"}, {"id": 2, "bytes": 4194304, "kind": "tensor"},
           {"id": 3, "bytes": 4194304, "kind": "tensor"}]})";

json answer(const char* trace, const char* request) {
  char* const text = spillway_plan_trace(trace, request);
  const json read = json::parse(text);
  spillway_plan_free(text);
  return read;
}

TEST(PlanFunctions, TellNeedsWithoutABudget) {
  const json told = answer(kTrace, "{}");
  EXPECT_EQ(told.at("needs").at("resident_bytes"), 12U << 20U);
  EXPECT_EQ(told.at("needs").at("smallest_bytes"), 8U << 20U);
  EXPECT_FALSE(told.contains("plan"));
}

TEST(PlanFunctions, PlanWholeBlocksWithinTheBudget) {
  const json told = answer(kTrace, R"({"budget_bytes": 8388608, "timeline": true})");
  EXPECT_EQ(told.at("plan").at("format"), "spillway-plan");
  EXPECT_LE(told.at("figures").at("peak_bytes"), 8U << 20U);
  for (const json& move : told.at("plan").at("offloads"))
    EXPECT_EQ(move.at("size_bytes"), 4U << 20U);
  EXPECT_GE(told.at("figures").at("makespan_seconds"), told.at("figures").at("compute_seconds"));
  EXPECT_TRUE(told.contains("timeline"));
}

TEST(PlanFunctions, RefuseABudgetWithTheSmallestThatWorks) {
  const json told = answer(kTrace, R"({"budget_bytes": 8388607})");
  EXPECT_EQ(told.at("refused").at("smallest_bytes"), 8U << 20U);
  EXPECT_FALSE(told.contains("plan"));
}

TEST(PlanFunctions, FindTheSmallestBudgetOfAPlannerThatMovesNothing) {
  const json told = answer(kTrace, R"({"budget_bytes": 8388608, "planner": "resident"})");
  EXPECT_EQ(told.at("refused").at("smallest_bytes"), 12U << 20U);
}

// f saves 8 MiB for b, or nothing: then b takes longer.
const char* const kVaried = R"({"format": "spillway-trace", "version": 2, "name": "toy", "tasks": [
  {"name": "f", "reads": [], "writes": [1], "variants": [
    {"name": "saves", "writes": [2], "duration_ns": 1000000, "workspace_bytes": 0},
    {"name": "saves nothing", "duration_ns": 1000000, "workspace_bytes": 0}]},
  {"name": "b", "reads": [1], "writes": [], "same_variant_as": 0, "variants": [
    {"name": "saves", "reads": [2], "duration_ns": 1000000, "workspace_bytes": 0},
    {"name": "saves nothing", "duration_ns": 3000000, "workspace_bytes": 0}]}],
  "data": [{"id": 1, "bytes": 4194304, "kind": "tensor"},
           {"id": 2, "bytes": 8388608, "kind": "tensor"}]})";

TEST(PlanFunctions, ChooseVariants) {
  const json told = answer(kVaried, R"({"budget_bytes": 4194304})");
  EXPECT_EQ(told.at("needs").at("smallest_bytes"), 4U << 20U);
  EXPECT_EQ(told.at("needs").at("resident_bytes"), 12U << 20U);
  EXPECT_EQ(told.at("plan").at("variants"), json({{"b", "saves nothing"}, {"f", "saves nothing"}}));
  EXPECT_EQ(told.at("figures").at("variants").at("b"), "saves nothing");
  EXPECT_EQ(told.at("figures").at("compute_seconds"), 0.002);
  EXPECT_EQ(told.at("figures").at("makespan_seconds"), 0.004);
  const json roomy = answer(kVaried, R"({"budget_bytes": 12582912})");
  EXPECT_EQ(roomy.at("plan").at("variants").at("b"), "saves");
  const json first = answer(kVaried, R"({"budget_bytes": 4194304, "planner": "capacity"})");
  EXPECT_EQ(first.at("refused").at("smallest_bytes"), 12U << 20U);
}

// Some planners' rules ask for more, or for less, than they need.
TEST(PlanFunctions, NameABudgetThatEachPlannerKeeps) {
  for (const std::string planner : {"autoswap", "ibm-ooc", "joint", "modnn", "recompute",
                                    "resident", "rotor", "superneurons", "vdnn-conv"}) {
    const auto within = [&](std::uint64_t bytes) {
      return answer(kTrace, json{{"budget_bytes", bytes}, {"planner", planner}}.dump().c_str());
    };
    const json refused = within(1);
    ASSERT_TRUE(refused.contains("refused")) << planner;
    const std::uint64_t smallest = refused.at("refused").at("smallest_bytes");
    EXPECT_TRUE(within(smallest).contains("plan")) << planner;
    EXPECT_TRUE(within(smallest - 1).contains("refused")) << planner;
  }
}

TEST(PlanFunctions, SayWhatIsWrong) {
  const auto error = [](const char* trace, const char* request) {
    return answer(trace, request).at("error").get<std::string>();
  };
  EXPECT_NE(error("{}", "{}").find("format"), std::string::npos);
  EXPECT_NE(error(kTrace, R"({"buget_bytes": 1})").find("budget_bytes"), std::string::npos);
  EXPECT_NE(error(kTrace, R"({"budget_bytes": 1, "planner": "best"})").find("joint"),
            std::string::npos);
  EXPECT_NE(error(nullptr, "{}").find("NULL"), std::string::npos);
}

}  // namespace
