// `spillway plan --ranks`: one of several processors that train together.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/src/cli/program.h"
#include "tests/src/cli/refused.h"

namespace spillway::test {
namespace {

using nlohmann::json;

const Arguments kResnet = "plan --net resnet18 --batch 64 --machine v100 --budget 40%";

json planned_ranks(const Arguments& more) { return json_of({kResnet, more, "--json -"}); }

class PlanRanks : public testing::Test {
 protected:
  PlanRanks() { std::filesystem::create_directories(folder_); }
  ~PlanRanks() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string path(const std::string& name) const { return folder_ / name; }
  [[nodiscard]] std::string content(const std::string& name) const {
    std::ifstream file{path(name)};
    return {std::istreambuf_iterator<char>{file}, {}};
  }

 private:
  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("plan_ranks_test." + std::to_string(getpid()));
};

// 11.7 million weights of 4 bytes in buckets of 1 MiB and then 25.
TEST_F(PlanRanks, TellsWhatTheExchangeTakes) {
  const json figures = planned_ranks("--ranks 8 --interconnect 5GB/s --exchange-on own");
  const json& ranks = figures.at("ranks");
  EXPECT_EQ(ranks.at("count"), 8);
  EXPECT_EQ(ranks.at("buckets"), 3);
  EXPECT_NEAR(ranks.at("gradient_bytes").get<double>(), 4 * 11.69e6, 1e6);
  const double exchange = ranks.at("exchange_seconds");
  const double sent = 2 * 7.0 / 8 * ranks.at("gradient_bytes").get<double>();
  EXPECT_NEAR(exchange, sent / 5e9 + 3 * 14 * 5e-6, 1e-6);
  const double step = figures.at("makespan_seconds");
  EXPECT_GE(step, exchange);
  EXPECT_GE(step, figures.at("bounds").at("mixed_turnover").get<double>());
  EXPECT_NEAR(ranks.at("images_per_second").get<double>(), 8 * 64 / step, 1e-6 * 512 / step);
  EXPECT_NEAR(ranks.at("scaling_efficiency").get<double>(),
              ranks.at("one_rank_seconds").get<double>() / step, 1e-9);
  EXPECT_GT(ranks.at("exchange_hidden"), 0.0);
  EXPECT_LE(ranks.at("exchange_hidden"), 1.0);
}

// Moves and exchanges need the link: together no more than it has each way.
TEST_F(PlanRanks, CountsTheLinkThatMovesAndExchangesShare) {
  const Arguments ranks = "--ranks 8 --interconnect 25GB/s";
  const json figures = planned_ranks({ranks, "--exchange-on link"});
  const double sent = 2 * 7.0 / 8 * figures.at("ranks").at("gradient_bytes").get<double>();
  const double offloaded = figures.at("offloaded_bytes");
  EXPECT_GE(figures.at("makespan_seconds").get<double>(), (sent + offloaded) / 12.5e9);
  EXPECT_LE(planned_ranks({ranks, "--exchange-on own"}).at("makespan_seconds"),
            figures.at("makespan_seconds"));
}

TEST_F(PlanRanks, HaveALaneInTheTimeline) {
  succeed({kResnet, "--ranks 4 --interconnect 10GB/s --timeline", path("timeline.json")});
  expect_parts(content("timeline.json"), {"exchange (between ranks)", "bucket 1", "bucket 3"});
}

TEST_F(PlanRanks, OfOneAreThePlanThatItWas) {
  succeed({kResnet, "--out", path("plan.json")});
  succeed({kResnet, "--ranks 1 --out", path("one.json")});
  EXPECT_EQ(content("one.json"), content("plan.json"));
  EXPECT_EQ(content("one.json").find("exchange"), std::string::npos);
  EXPECT_FALSE(planned_ranks("--ranks 1").contains("ranks"));
}

TEST_F(PlanRanks, AreNotExecutedYet) {
  const Arguments lenet = "--net lenet --batch 8";
  succeed({"plan", lenet, "--ranks 2 --interconnect 1GB/s --out", path("plan.json")});
  expect_refused(kFailure, {"train", lenet, "--steps 1 --plan", path("plan.json")},
                 {"several ranks", "without --ranks"});
}

TEST_F(PlanRanks, ArePlannedForTracesToo) {
  const json figures =
      json_of({"plan --trace-in", std::string{SPILLWAY_TRACES "/bert-base-b256-a100.json"},
               "--machine a100 --budget 40GB --ranks 16 --interconnect 25GB/s --planner capacity",
               "--json -"});
  EXPECT_EQ(figures.at("verified"), true);
  EXPECT_GT(figures.at("ranks").at("buckets"), 1);
  EXPECT_FALSE(figures.at("ranks").contains("images_per_second"));
}

TEST_F(PlanRanks, RefuseNumbersThatCannotBe) {
  for (const char* number : {"0", "1000000", "-2", "two", "1.5", ""}) {
    expect_refused(kBadUsage, {kResnet, "--interconnect 1GB/s --ranks", std::string{number}},
                   {"--ranks"});
  }
  for (const char* rate : {"0", "0GB/s", "25", "1kB/s"}) {
    expect_refused(kBadUsage, {kResnet, "--ranks 2 --interconnect", std::string{rate}},
                   {"--interconnect"});
  }
  const Arguments two{kResnet, "--ranks 2 --interconnect 1GB/s"};
  expect_refused(kBadUsage, {two, "--interconnect-latency 2s"}, {"--interconnect-latency"});
  expect_refused(kBadUsage, {two, "--exchange-on both"}, {"--exchange-on"});
  expect_refused(kBadUsage, {two, "--bucket 0"}, {"--bucket"});
}

TEST_F(PlanRanks, RefuseWhatIsPlannedForOneOnly) {
  expect_refused(kFailure, {kResnet, "--ranks 2"}, {"--interconnect"});
  const Arguments two{kResnet, "--ranks 2 --interconnect 1GB/s"};
  expect_refused(kFailure, {two, "--sub-batch 16"}, {"--ranks", "--sub-batch"});
  expect_refused(kFailure, {two, "--update far"}, {"--ranks", "--update far"});
  expect_refused(kFailure, {two, "--model paleo"}, {"--model paleo"});
  expect_refused(kFailure, {two, "--planner on-demand"}, {"--ranks", "on-demand"});
}

}  // namespace
}  // namespace spillway::test
