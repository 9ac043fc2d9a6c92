// `spillway train --micro-batch-size`: a batch in parts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/src/cli/program.h"
#include "tests/temporary_folder.h"

namespace spillway::test {
namespace {

using nlohmann::json;

// Trains three steps unless `more` says otherwise.
Arguments train_lenet(Arguments more) {
  if (std::ranges::count(more, "--steps") == 0) more = {more, "--steps 3"};
  return {"train --net lenet --batch 16 --conv-algorithm direct", more};
}

json trained(const Arguments& more) { return summary_of({train_lenet(more), "--json -"}); }

TEST(TrainMicroBatch, IsTheWholeBatchWhereThatIsNotCut) {
  const json whole = trained({});
  EXPECT_EQ(whole.at("micro_batch_size"), 16);
  EXPECT_EQ(whole.at("micro_batches"), 1);
  EXPECT_FALSE(whole.contains("batch_norm_statistics"));
  for (const char* const same : {"--micro-batch-size 16", "--micro-batches 1"}) {
    EXPECT_EQ(trained(same).at("weights_sha256"), whole.at("weights_sha256")) << same;
  }
}

TEST(TrainMicroBatch, IsTheSameByNumberAndBySize) {
  EXPECT_EQ(trained("--micro-batches 4").at("weights_sha256"),
            trained("--micro-batch-size 4").at("weights_sha256"));
}

// Sixteen samples in parts of at most five: four of four. LeNet treats samples independently.
TEST(TrainMicroBatch, OfTheSizeAskedForIsNamedAndEndsAsTheWholeBatchUpToRounding) {
  const json whole = trained({});
  const json parts = trained("--micro-batch-size 5");
  EXPECT_EQ(parts.at("batch"), 16);
  EXPECT_EQ(parts.at("micro_batch_size"), 4);
  EXPECT_EQ(parts.at("micro_batches"), 4);
  EXPECT_EQ(parts.at("steps"), 3);
  for (const char* key : {"first_loss", "last_loss"}) {
    EXPECT_NEAR(parts.at(key).get<double>(), whole.at(key).get<double>(), 1e-5) << key;
  }
}

TEST(TrainMicroBatch, TrainsInABudgetThatTheWholeBatchBreaks) {
  const std::uint64_t smallest = trained("--state near").at("min_budget_bytes");
  const std::string budget = std::to_string(smallest - 1);
  expect_refused(kFailure, train_lenet({"--state near --budget", budget}),
                 {"needs most", "smallest budget"});
  for (const char* const cut : {"--micro-batches 4", "--micro-batches auto"}) {
    const json parts = trained({"--budget", budget, cut});
    EXPECT_GT(parts.at("micro_batches"), 1) << cut;
    EXPECT_LE(parts.at("near_peak_bytes"), std::stoull(budget)) << cut;
    EXPECT_LT(parts.at("min_budget_bytes"), smallest) << cut;
  }
}

// Does the same for `spillway plan`, which reports the smallest budget that train accepts.
TEST(TrainMicroBatch, TrainsInTheSmallestBudgetThatAPlanWasRefusedFor) {
  const Arguments net = "--net lenet --batch 7 --micro-batch-size 3";
  const Outcome refused = run_spillway({"plan --machine host --budget 1KiB --json -", net});
  EXPECT_EQ(refused.exit_code, kFailure);
  const std::uint64_t smallest = json::parse(refused.output).at("min_budget_bytes");
  const auto with_budget = [&](const char* command, std::uint64_t budget) {
    return Arguments{command, "--budget", std::to_string(budget), net};
  };
  succeed({with_budget("plan", smallest), "--machine host"});
  succeed({with_budget("train", smallest), "--steps 1"});
  expect_refused(kFailure, {with_budget("plan", smallest - 1), "--machine host"},
                 {"smallest budget"});
}

TEST(TrainMicroBatch, GivesTheSameBitsInEveryModeAtTheSmallestBudget) {
  const Arguments five = "--micro-batch-size 5";
  const json resident = trained({five, "--memory resident"});
  const std::string budget = std::to_string(resident.at("min_budget_bytes").get<std::uint64_t>());
  for (const char* memory : {"managed", "copy"}) {
    const json other = trained({five, "--memory", memory, "--budget", budget});
    EXPECT_EQ(other.at("weights_sha256"), resident.at("weights_sha256")) << memory;
    EXPECT_EQ(other.at("last_loss"), resident.at("last_loss")) << memory;
    EXPECT_GT(other.at("bytes_offloaded"), 0) << memory;
    EXPECT_EQ(other.at("faults"), 0) << memory;
  }
}

// A step's line counts all its micro-batches: what the plan moves.
TEST(TrainMicroBatch, ReportsWholeBatches) {
  const std::uint64_t smallest = trained("--micro-batch-size 5").at("min_budget_bytes");
  const Outcome outcome = run_spillway(train_lenet(
      {"--micro-batch-size 5 --memory copy --budget", std::to_string(smallest), "--json -"}));
  const json summary = summary_of(outcome);
  std::size_t steps = 0;
  for (const json& line : json_lines(outcome)) {
    if (!line.contains("loss")) continue;
    ++steps;
    EXPECT_GE(line.at("bytes_offloaded"), summary.at("planned_offload_bytes"));
    EXPECT_LE(line.at("near_peak_bytes"), smallest);
    EXPECT_LE(line.at("correct"), 16);
    EXPECT_EQ(line.at("learning_rate"), 0.01);
  }
  EXPECT_EQ(steps, 3U);
  EXPECT_GT(summary.at("planned_offload_bytes"), 0);
}

TEST(TrainMicroBatch, SaysThatBatchNormsStatisticsAreOfEachMicroBatch) {
  const Arguments resnet = "train --net resnet18 --batch 4 --steps 1 --image-size 32 --json -";
  const Outcome parts = run_spillway({resnet, "--micro-batch-size 2"});
  EXPECT_EQ(summary_of(parts).at("batch_norm_statistics"), "per micro-batch");
  expect_parts(parts.errors, {"statistics are of each micro-batch alone"});
  const Outcome whole = run_spillway(resnet);
  EXPECT_EQ(summary_of(whole).at("batch_norm_statistics"), "per batch");
  EXPECT_EQ(whole.errors.find("micro-batch"), std::string::npos);
}

TEST(TrainMicroBatch, GoesOnFromACheckpointWithItsMicroBatches) {
  const TemporaryFolder folder;
  const std::string checkpoint = folder.file("checkpoint");
  const Arguments kept = {"--checkpoint", checkpoint};
  const json whole = trained("--steps 6 --micro-batch-size 5");
  static_cast<void>(trained({kept, "--micro-batch-size 5"}));
  json saved = json::parse(std::ifstream{checkpoint + "/checkpoint.json"});
  EXPECT_EQ(saved.at("micro_batch_size"), 4);
  const Arguments on = {kept, "--resume --steps 6"};
  expect_refused(kFailure, train_lenet({on, "--micro-batch-size 8"}),
                 {"with --micro-batch-size 4", "leave out --micro-batches"});

  // The same command, and a plan's choice, ask for the same micro-batch.
  for (const char* const same :
       {"--micro-batch-size 5", "--micro-batches 4", "--micro-batches auto"}) {
    static_cast<void>(trained({kept, "--resume --steps 4", same}));
  }

  const json resumed = trained(on);

  EXPECT_EQ(resumed.at("micro_batch_size"), 4);
  EXPECT_EQ(resumed.at("weights_sha256"), whole.at("weights_sha256"));
}

// Adam's step count, moments and learning rates are those of whole batches.
TEST(TrainMicroBatch, GoesOnWithAdam) {
  const TemporaryFolder folder;
  const Arguments adam = "--micro-batch-size 5 --optimizer adam --lr 0.002";
  const Arguments kept = {"--checkpoint", folder.file("checkpoint")};
  const json whole = trained({adam, "--steps 6"});
  static_cast<void>(trained({adam, kept}));

  const json resumed = trained({kept, "--resume --steps 6"});

  EXPECT_EQ(resumed.at("steps_run"), 3);
  EXPECT_EQ(resumed.at("weights_sha256"), whole.at("weights_sha256"));
}

TEST(TrainMicroBatch, RefusesToCutTheBatchOfACheckpointThatIsWhole) {
  const TemporaryFolder folder;
  const Arguments kept = {"--checkpoint", folder.file("checkpoint")};
  static_cast<void>(trained(kept));
  expect_refused(kFailure, train_lenet({kept, "--resume --micro-batch-size 4"}),
                 {"with whole batches", "leave out --micro-batches"});
}

// A plan is of all micro-batches together.
TEST(TrainMicroBatch, RunsByAPlanInAFile) {
  const TemporaryFolder folder;
  const std::string plan = folder.file("plan.json");
  const Arguments cut = "--net lenet --batch 16 --conv-algorithm direct --micro-batch-size 5";
  succeed({"plan --machine host --budget min --out", plan, cut});
  const json by_file = trained({"--micro-batch-size 5 --plan", plan});
  EXPECT_EQ(by_file.at("weights_sha256"), trained("--micro-batch-size 5").at("weights_sha256"));
  EXPECT_GT(by_file.at("bytes_offloaded"), 0);
  expect_refused(kFailure, train_lenet({"--micro-batch-size 8 --plan", plan}), {plan});
}

TEST(TrainMicroBatch, RefusesWhatIsNoSize) {
  for (const char* size : {"0", "-8", "x", "1.5"}) {
    expect_refused(kBadUsage, train_lenet({"--micro-batch-size", size}), {"--micro-batch-size"});
  }
  expect_refused(kFailure, train_lenet("--micro-batch-size 17"), {"is not part of a batch of 16"});
}

TEST(TrainMicroBatch, ThatIsStillTooLargeSaysWhatItNeeds) {
  expect_refused(kFailure, train_lenet("--micro-batch-size 8 --budget 100KiB"),
                 {"needs most", "smallest budget"});
  expect_refused(kFailure, train_lenet("--micro-batches auto --budget 100KiB"),
                 {"in micro-batches of 1", "smallest budget"});
}

}  // namespace
}  // namespace spillway::test
