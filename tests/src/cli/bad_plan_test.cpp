// Plans and profiles that belong to another step, or were changed by hand.

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/src/cli/program.h"
#include "tests/temporary_folder.h"

namespace spillway::test {
namespace {

using nlohmann::json;

class BadPlan : public testing::Test {
 protected:
  // Makes a plan of `small_training` that moves blocks.
  BadPlan() {
    succeed({"plan --net lenet --batch 8 --budget min --state near --recompute off --out", path()});
    std::ifstream{path()} >> plan_;
    EXPECT_FALSE(plan_.at("offloads").empty());
    EXPECT_FALSE(plan_.at("prefetches").empty());
  }

  [[nodiscard]] std::string path() const { return folder_.file("plan.json"); }
  [[nodiscard]] Arguments training(const Arguments& more = {}) const {
    return {small_training({"--plan", path()}), more};
  }

  void expect_refused_when(const std::function<void(json&)>& tamper,
                           const std::vector<std::string>& words,
                           const Arguments& flags = {}) const {
    json plan = plan_;
    tamper(plan);
    std::ofstream{path()} << plan;
    expect_refused(1, training(flags), words);
  }

  TemporaryFolder folder_;
  json plan_;
};

TEST_F(BadPlan, IsNotWhatTheseTestsStartFrom) { succeed(training()); }

TEST_F(BadPlan, ThatForgetsSomethingIsRefusedByTheVerifier) {
  const std::vector<std::function<void(json&)>> tamperings{
      [](json& plan) {
        plan["offloads"] = json::array();
        plan["prefetches"] = json::array();
        for (json& run : plan["runs"]) run["after"] = {run["after"][0], 0, 0};
      },
      [](json& plan) { plan["prefetches"].erase(0); },
      [](json& plan) {
        for (json& move : plan["prefetches"]) move["after"] = {0, 0, 0};
      },
      [](json& plan) { plan["runs"].erase(5); },
      [](json& plan) { std::swap(plan["runs"][3], plan["runs"][4]); }};
  for (const auto& tamper : tamperings) expect_refused_when(tamper, {"plan.json must not run"});
}

TEST_F(BadPlan, WithASmallerBudgetThanItsPeakIsRefusedByTheVerifier) {
  constexpr std::uint64_t kPage = 4096;
  expect_refused_when(
      [](json& plan) { plan["budget_bytes"] = plan["budget_bytes"].get<std::uint64_t>() - kPage; },
      {"plan.json must not run"}, "--budget min");
}

TEST_F(BadPlan, WithABudgetThatTheMachineDoesNotHaveIsRefused) {
  expect_refused_when([](json& plan) { plan["budget_bytes"] = 1ULL << 50U; },
                      {"1024 TiB", "free", "give a smaller --budget to spillway plan"});
}

// tests/prefetch/files tests other errors in plans.
TEST_F(BadPlan, SaysWhichMemberIsWrong) {
  expect_refused_when([](json& plan) { plan["runs"][1]["algorithm"] = "magic"; },
                      {"plan.json: runs[1].algorithm", "'magic'", "conv1.forward"});
  expect_refused_when([](json& plan) { plan["offloads"][0]["size_bytes"] = -1; },
                      {"plan.json: offloads[0].size_bytes", "whole number"});
  expect_refused_when([](json& plan) { plan["page_bytes"] = 8192; }, {"plan.json", "page"});
}

TEST(BadProfile, SaysWhichMemberIsWrong) {
  const TemporaryFolder folder;
  const std::string path = folder.file("profile.json");
  succeed({"profile --net lenet --batch 8 --out", path});
  json profile = json::parse(std::ifstream{path});
  profile["tasks"][1]["duration_ns"] = json::object();
  std::ofstream{path} << profile;
  expect_refused(1, small_training({"--profile", path}),
                 {"profile.json: tasks[1].duration_ns.direct is missing"});
}

TEST(ModelProfile, IsTheSameEachTimeAndTrains) {
  const TemporaryFolder folder;
  for (const char* name : {"first", "second"}) {
    succeed({"profile --net lenet --batch 8 --machine host --out", folder.file(name)});
  }
  const json first = json::parse(std::ifstream{folder.file("first")});
  EXPECT_EQ(first, json::parse(std::ifstream{folder.file("second")}));
  succeed(small_training({"--profile", folder.file("first")}));
}

}  // namespace
}  // namespace spillway::test
