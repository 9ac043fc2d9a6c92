// `spillway train --sub-batch`: a batch in parts.
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

TEST(TrainSubBatch, IsTheWholeBatchWhereItIsOff) {
  const json off = trained("--sub-batch off");
  EXPECT_EQ(off.at("sub_batch"), 16);
  EXPECT_EQ(off.at("sub_steps"), 1);
  EXPECT_FALSE(off.contains("batch_norm_statistics"));
  EXPECT_EQ(trained({}).at("weights_sha256"), off.at("weights_sha256"));
  EXPECT_EQ(trained("--sub-batch 16").at("weights_sha256"), off.at("weights_sha256"));
}

// Sixteen samples in parts of at most five: four of four. LeNet treats samples independently.
TEST(TrainSubBatch, OfTheSizeAskedForIsNamedAndEndsAsTheWholeBatchUpToRounding) {
  const json whole = trained({});
  const json parts = trained("--sub-batch 5");
  EXPECT_EQ(parts.at("batch"), 16);
  EXPECT_EQ(parts.at("sub_batch"), 4);
  EXPECT_EQ(parts.at("sub_steps"), 4);
  EXPECT_EQ(parts.at("steps"), 3);
  for (const char* key : {"first_loss", "last_loss"}) {
    EXPECT_NEAR(parts.at(key).get<double>(), whole.at(key).get<double>(), 1e-5) << key;
  }
}

TEST(TrainSubBatch, TrainsInABudgetThatTheWholeBatchBreaks) {
  const std::uint64_t smallest = trained("--state near").at("min_budget_bytes");
  const std::string budget = std::to_string(smallest - 1);
  expect_refused(kFailure, train_lenet({"--state near --budget", budget}),
                 {"needs most", "smallest budget"});
  for (const char* size : {"4", "auto"}) {
    const json parts = trained({"--budget", budget, "--sub-batch", size});
    EXPECT_GT(parts.at("sub_steps"), 1) << size;
    EXPECT_LE(parts.at("near_peak_bytes"), std::stoull(budget)) << size;
    EXPECT_LT(parts.at("min_budget_bytes"), smallest) << size;
  }
}

// Does the same for `spillway plan`, which reports the smallest budget that train accepts.
TEST(TrainSubBatch, TrainsInTheSmallestBudgetThatAPlanWasRefusedFor) {
  const Arguments net = "--net lenet --batch 7 --sub-batch 3";
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

TEST(TrainSubBatch, GivesTheSameBitsInEveryModeAtTheSmallestBudget) {
  const Arguments five = "--sub-batch 5";
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

// A step's line counts all its sub-batches: what the plan moves.
TEST(TrainSubBatch, ReportsWholeBatches) {
  const std::uint64_t smallest = trained("--sub-batch 5").at("min_budget_bytes");
  const Outcome outcome = run_spillway(
      train_lenet({"--sub-batch 5 --memory copy --budget", std::to_string(smallest), "--json -"}));
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

TEST(TrainSubBatch, SaysThatBatchNormsStatisticsAreOfEachSubBatch) {
  const Arguments resnet = "train --net resnet18 --batch 4 --steps 1 --image-size 32 --json -";
  const Outcome parts = run_spillway({resnet, "--sub-batch 2"});
  EXPECT_EQ(summary_of(parts).at("batch_norm_statistics"), "per sub-batch");
  expect_parts(parts.errors, {"statistics are of each sub-batch alone"});
  const Outcome whole = run_spillway(resnet);
  EXPECT_EQ(summary_of(whole).at("batch_norm_statistics"), "per batch");
  EXPECT_EQ(whole.errors.find("sub-batch"), std::string::npos);
}

TEST(TrainSubBatch, GoesOnFromACheckpointWithItsSubBatches) {
  const TemporaryFolder folder;
  const std::string checkpoint = folder.file("checkpoint");
  const Arguments kept = {"--checkpoint", checkpoint};
  const json whole = trained("--steps 6 --sub-batch 5");
  static_cast<void>(trained({kept, "--sub-batch 5"}));
  json saved = json::parse(std::ifstream{checkpoint + "/checkpoint.json"});
  EXPECT_EQ(saved.at("sub_batch"), 4);
  const Arguments on = {kept, "--resume --steps 6"};
  expect_refused(kFailure, train_lenet({on, "--sub-batch 8"}),
                 {"with --sub-batch 4", "leave out --sub-batch"});

  // The same command, and a plan's choice, ask for the same sub-batch.
  for (const char* same : {"5", "auto"}) {
    static_cast<void>(trained({kept, "--resume --steps 4 --sub-batch", same}));
  }

  const json resumed = trained(on);

  EXPECT_EQ(resumed.at("sub_batch"), 4);
  EXPECT_EQ(resumed.at("weights_sha256"), whole.at("weights_sha256"));
}

// Adam's step count, moments and learning rates are those of whole batches.
TEST(TrainSubBatch, GoesOnWithAdam) {
  const TemporaryFolder folder;
  const Arguments adam = "--sub-batch 5 --optimizer adam --lr 0.002";
  const Arguments kept = {"--checkpoint", folder.file("checkpoint")};
  const json whole = trained({adam, "--steps 6"});
  static_cast<void>(trained({adam, kept}));

  const json resumed = trained({kept, "--resume --steps 6"});

  EXPECT_EQ(resumed.at("steps_run"), 3);
  EXPECT_EQ(resumed.at("weights_sha256"), whole.at("weights_sha256"));
}

TEST(TrainSubBatch, RefusesToCutTheBatchOfACheckpointThatIsWhole) {
  const TemporaryFolder folder;
  const Arguments kept = {"--checkpoint", folder.file("checkpoint")};
  static_cast<void>(trained(kept));
  expect_refused(kFailure, train_lenet({kept, "--resume --sub-batch 4"}),
                 {"with --sub-batch off", "leave out --sub-batch"});
}

// A plan is of all sub-batches together.
TEST(TrainSubBatch, RunsByAPlanInAFile) {
  const TemporaryFolder folder;
  const std::string plan = folder.file("plan.json");
  const Arguments cut = "--net lenet --batch 16 --conv-algorithm direct --sub-batch 5";
  succeed({"plan --machine host --budget min+50% --out", plan, cut});
  const json by_file = trained({"--sub-batch 5 --plan", plan});
  EXPECT_EQ(by_file.at("weights_sha256"), trained("--sub-batch 5").at("weights_sha256"));
  EXPECT_GT(by_file.at("bytes_offloaded"), 0);
  expect_refused(kFailure, train_lenet({"--sub-batch 8 --plan", plan}), {plan});
}

TEST(TrainSubBatch, RefusesWhatIsNoSize) {
  for (const char* size : {"0", "-8", "x", "1.5"}) {
    expect_refused(kBadUsage, train_lenet({"--sub-batch", size}),
                   {"--sub-batch", "is no size of sub-batches"});
  }
  expect_refused(kFailure, train_lenet("--sub-batch 17"), {"more than the batch of 16"});
}

TEST(TrainSubBatch, ThatIsStillTooLargeSaysWhatItNeeds) {
  expect_refused(kFailure, train_lenet("--sub-batch 8 --budget 100KiB"),
                 {"needs most", "smallest budget"});
  expect_refused(kFailure, train_lenet("--sub-batch auto --budget 100KiB"),
                 {"in sub-batches of 1", "smallest budget"});
}

}  // namespace
}  // namespace spillway::test
