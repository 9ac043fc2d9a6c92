// `spillway plan --ranks`: plans for one of several ranks.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "tests/src/cli/program.h"
#include "tests/temporary_folder.h"

namespace spillway::test {
namespace {

using nlohmann::json;

const Arguments kResnet = "plan --net resnet18 --batch 64 --machine v100 --budget 60%";

// `joint` takes seconds; other tests run it on smaller steps of ranks.
const Arguments kPlanned = {kResnet, "--planner capacity"};

json planned_ranks(const Arguments& more) { return json_of({kPlanned, more, "--json -"}); }

class PlanRanks : public testing::Test {
 protected:
  [[nodiscard]] std::string path(const std::string& name) const { return folder_.file(name); }
  [[nodiscard]] std::string content(const std::string& name) const {
    std::ifstream file{path(name)};
    return {std::istreambuf_iterator<char>{file}, {}};
  }

 private:
  TemporaryFolder folder_;
};

// 11,181,642 weights of 4 bytes, for 10 classes, in buckets of 1 MiB and then 25 MiB.
TEST_F(PlanRanks, TellsWhatTheExchangeTakes) {
  const json figures = planned_ranks("--ranks 8 --interconnect 5GB/s --exchange-on own");
  const json& ranks = figures.at("ranks");
  EXPECT_EQ(ranks.at("count"), 8);
  EXPECT_EQ(ranks.at("buckets"), 3);
  EXPECT_EQ(ranks.at("gradient_bytes"), 4 * 11'181'642);
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

// Moves and exchanges share the link: together they use at most its bandwidth each way.
TEST_F(PlanRanks, CountsTheLinkThatMovesAndExchangesShare) {
  const Arguments ranks = "--ranks 8 --interconnect 25GB/s";
  const json figures = planned_ranks({ranks, "--exchange-on link"});
  const double sent = 2 * 7.0 / 8 * figures.at("ranks").at("gradient_bytes").get<double>();
  const double offloaded = figures.at("offloaded_bytes");
  EXPECT_GE(figures.at("makespan_seconds").get<double>(), (sent + offloaded) / 12.5e9);
  EXPECT_LE(planned_ranks({ranks, "--exchange-on own"}).at("makespan_seconds"),
            figures.at("makespan_seconds"));
}

TEST_F(PlanRanks, TellsWhatOneRankTakes) {
  const Arguments ranks = "--ranks 8 --interconnect 5GB/s";
  const json figures = planned_ranks(ranks);
  EXPECT_EQ(figures.at("ranks").at("one_rank_budget_bytes"), figures.at("budget_bytes"));
  expect_parts(succeed({kPlanned, ranks}).output, {"scaling ", "%; one rank alone takes "});
}

// 20,000 rows of 64 floats, and their gradients; includes lm_head's, which the loss computes in the
// forward pass.
TEST_F(PlanRanks, ExchangeWhatTheLossTrains) {
  const Arguments llama = "plan --net llama:2,4,2,64,96,32 --vocabulary 20000 --batch 1";
  const json figures = json_of({llama, "--machine a100 --ranks 2 --interconnect 25GB/s --json -"});
  EXPECT_EQ(figures.at("ranks").at("gradient_bytes"), 10'487'040);
}

constexpr const char* kFour =
    "plan --net resnet18 --batch 64 --machine v100 --ranks 4 --interconnect 25GB/s "
    "--planner capacity --json -";

// Keeps all in near memory, so that no planner can compensate.
TEST_F(PlanRanks, SlowsTasksBesideTheExchange) {
  const Arguments ranks = {kFour, "--budget 100% --exchange-on own"};
  const json slowed = json_of({ranks, "--compute-speed-while-exchanging 0.5"});
  EXPECT_GT(slowed.at("makespan_seconds"), json_of(ranks).at("makespan_seconds"));
  EXPECT_EQ(slowed.at("ranks").at("compute_speed_while_exchanging"), 0.5);
}

// Momentum is as large as the weights; three quarters of nearly all of it are on other ranks.
TEST_F(PlanRanks, DivideTheOptimizer) {
  const json whole = json_of({kFour, "--budget 100%"});
  const json divided = json_of({kFour, "--budget 100% --zero 1"});
  EXPECT_EQ(whole.at("ranks").at("zero"), 0);
  EXPECT_EQ(divided.at("ranks").at("zero"), 1);
  EXPECT_EQ(divided.at("ranks").at("gradient_bytes"), whole.at("ranks").at("gradient_bytes"));
  const double saved =
      whole.at("budget_bytes").get<double>() - divided.at("budget_bytes").get<double>();
  const double momentum = whole.at("ranks").at("gradient_bytes").get<double>();
  EXPECT_NEAR(saved, 0.75 * momentum, 0.02 * momentum);
}

TEST_F(PlanRanks, LetStateBeFar) {
  const json near = json_of({kFour, "--budget min --state near"});
  const json far = json_of({kFour, "--budget min --state far"});
  EXPECT_LT(far.at("budget_bytes"), near.at("budget_bytes"));
  EXPECT_GT(far.at("state_far_bytes"), 0);
}

TEST_F(PlanRanks, ChooseBucketsThatAreNoSlower) {
  const Arguments ranks = "--ranks 8 --interconnect 3GB/s --planner capacity";
  const json usual = json_of({kResnet, ranks, "--json -"});
  const json chosen = json_of({kResnet, ranks, "--bucket auto --json -"});
  EXPECT_EQ(usual.at("ranks").at("bucket_choice"), "given");
  EXPECT_EQ(usual.at("ranks").at("bucket_bytes"), 25 << 20U);
  EXPECT_EQ(chosen.at("ranks").at("bucket_choice"), "auto");
  EXPECT_LE(chosen.at("makespan_seconds"), usual.at("makespan_seconds"));
  EXPECT_EQ(chosen.at("budget_bytes"), usual.at("budget_bytes"));
  EXPECT_EQ(chosen.at("ranks").at("gradient_bytes"), usual.at("ranks").at("gradient_bytes"));
  const std::string text = succeed({kResnet, ranks, "--bucket auto"}).output;
  expect_parts(text, {"gradients        in ", " (auto)\n"});
}

// With 1,000 ranks each bucket takes 1,998 messages, so few buckets are better.
TEST_F(PlanRanks, ChooseFewBucketsWhereMessagesTakeLong) {
  const json figures = json_of(
      {kResnet, "--ranks 1000 --interconnect 25GB/s --interconnect-latency 1ms --planner capacity",
       "--bucket auto --json -"});
  EXPECT_EQ(figures.at("ranks").at("gradient_buckets"), 1);
}

TEST_F(PlanRanks, HaveALaneInTheTimeline) {
  succeed({kPlanned, "--ranks 4 --interconnect 10GB/s --timeline", path("timeline.json")});
  expect_parts(content("timeline.json"), {"exchange (between ranks)", "bucket 1", "bucket 3"});
}

TEST_F(PlanRanks, OfOneAreThePlanThatItWas) {
  succeed({kPlanned, "--out", path("plan.json")});
  succeed({kPlanned, "--ranks 1 --out", path("one.json")});
  EXPECT_EQ(content("one.json"), content("plan.json"));
  EXPECT_EQ(content("one.json").find("exchange"), std::string::npos);
  EXPECT_FALSE(planned_ranks("--ranks 1").contains("ranks"));
}

TEST_F(PlanRanks, AreNotExecutedByOne) {
  const Arguments lenet = "--net lenet --batch 8";
  succeed({"plan", lenet, "--ranks 2 --interconnect 1GB/s --out", path("plan.json")});
  expect_refused(kFailure, {"train", lenet, "--steps 1 --plan", path("plan.json")},
                 {"several ranks", "without --ranks"});
}

// 2 * 3/4 of a 32 MB gradient at 1 GB/s, plus 6 messages of 5 us.
TEST_F(PlanRanks, ArePlannedForTracesToo) {
  std::ofstream{path("step.json")} << R"({"format":"spillway-trace","version":1,"name":"one layer",
    "data":[{"id":1,"bytes":32000000,"kind":"weight"},{"id":2,"bytes":64000000,"kind":"tensor"},
            {"id":3,"bytes":32000000,"kind":"tensor"}],
    "tasks":[{"name":"f","duration_ns":1000000,"reads":[1],"writes":[2],"workspace_bytes":0},
             {"name":"b","duration_ns":2000000,"reads":[2],"writes":[3],"workspace_bytes":0},
             {"name":"u","duration_ns":500000,"reads":[1,3],"writes":[1],"workspace_bytes":0}]})";
  const json figures = json_of({"plan --machine v100 --ranks 4 --interconnect 1GB/s --trace-in",
                                path("step.json"), "--json -"});
  EXPECT_NEAR(figures.at("makespan_seconds").get<double>(), 0.003 + 0.048 + 30e-6 + 0.0005, 1e-8);
  EXPECT_NEAR(figures.at("ranks").at("one_rank_seconds").get<double>(), 0.0035, 1e-8);
  EXPECT_FALSE(figures.at("ranks").contains("images_per_second"));
}

// This step updates weights immediately and uses some of them afterwards.
TEST_F(PlanRanks, RefuseATraceWhoseUpdatesCannotWait) {
  expect_refused(kFailure,
                 {"plan --machine a100 --ranks 16 --interconnect 25GB/s --trace-in",
                  std::string{SPILLWAY_TRACES "/bert-base-b256-a100.json"}},
                 {"weight 68", "updates cannot wait"});
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
  for (const char* const speed : {"0", "1.5", "nan", "half"}) {
    expect_refused(kBadUsage, {two, "--compute-speed-while-exchanging", std::string{speed}},
                   {"--compute-speed-while-exchanging"});
  }
  for (const char* size : {"0", "fast", "-1MiB", ""}) {
    expect_refused(kBadUsage, {two, "--bucket", std::string{size}}, {"--bucket", "auto"});
  }
}

TEST_F(PlanRanks, RefuseToExchangeAlone) {
  for (const Arguments& flag :
       {Arguments{"--interconnect 25GB/s"}, Arguments{"--bucket 1MiB"}, Arguments{"--zero 1"},
        Arguments{"--exchange-on own"}, Arguments{"--interconnect-latency 1us"},
        Arguments{"--compute-speed-while-exchanging 0.5"}}) {
    expect_refused(kBadUsage, {kResnet, flag}, {"--ranks"});
    expect_refused(kFailure, {kResnet, flag, "--ranks 1"}, {"leave it out", "--ranks 2"});
  }
}

TEST_F(PlanRanks, ExchangeOnceABatchThatIsCut) {
  const Arguments four{kResnet, "--ranks 2 --interconnect 1GB/s --micro-batch-size 16 --json -"};
  const json cut = json_of(four);
  EXPECT_EQ(cut.at("micro_batches"), 4);
  EXPECT_GT(cut.at("ranks").at("exchange_seconds"), 0);
  const json whole = json_of({kResnet, "--ranks 2 --interconnect 1GB/s --json -"});
  EXPECT_EQ(cut.at("ranks").at("gradient_bytes"), whole.at("ranks").at("gradient_bytes"));
}

TEST_F(PlanRanks, RefuseWhatIsPlannedForOneOnly) {
  expect_refused(kFailure, {kResnet, "--ranks 2"}, {"--interconnect"});
  const Arguments two{kResnet, "--ranks 2 --interconnect 1GB/s"};
  expect_refused(kFailure, {two, "--update far --zero 1"}, {"--zero", "--update far"});
  expect_refused(kFailure, {two, "--model paleo"}, {"--model paleo"});
  expect_refused(kFailure, {two, "--planner on-demand"}, {"--ranks", "on-demand"});
}

}  // namespace
}  // namespace spillway::test
