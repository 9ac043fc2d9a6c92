#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "prefetch/files/plan_file.h"
#include "src/io/file_digest.h"
#include "src/train/checkpoint/checkpoint.h"
#include "src/train/checkpoint/checkpoint_choice.h"
#include "src/train/trainer.h"
#include "tests/refusal.h"
#include "tests/src/every_optimizer.h"
#include "tests/src/printed_memory_mode.h"
#include "tests/src/small_training.h"
#include "tests/temporary_folder.h"

namespace spillway {
namespace {

TrainerOptions linear_options(MemoryMode mode, UpdateRule update, const OptimizerOptions& optimizer,
                              std::uint64_t steps = 4) {
  return {.network = test::heavy_network(),
          .step = {.batch = 3,
                   .convolution = ConvolutionAlgorithm::kDirect,
                   .optimizer = optimizer,
                   .largest_update = um::Bytes{64U << 10U}},
          .memory = {.budget = mode == MemoryMode::kResident ? "auto" : "min+20%", .mode = mode},
          .planning = {.update = update},
          .training = {.steps = steps}};
}

std::string resident_weights_with(const OptimizerOptions& optimizer) {
  Trainer trainer{test::small_context(),
                  linear_options(MemoryMode::kResident, UpdateRule::kAuto, optimizer)};
  return trainer.run().weights_sha256;
}

OptimizerOptions optimizer_named(const std::string& name) {
  if (name == "sgd") return SgdOptions{.momentum = 0.9F, .weight_decay = 0.01F, .nesterov = true};
  return AdamOptions{.weight_decay = 0.01F, .decoupled = name == "adamw"};
}

using Case = std::tuple<MemoryMode, std::string, std::string, bool>;  // ..., in a file

class FarUpdate : public testing::TestWithParam<Case> {};

TEST_P(FarUpdate, ChangesNoBit) {
  const auto& [mode, planner, optimizer, is_in_file] = GetParam();
  const test::TemporaryFolder folder;
  TrainerOptions options = linear_options(mode, UpdateRule::kFar, optimizer_named(optimizer));
  options.planning.planner = planner;
  if (is_in_file) options.memory.space.far.file = folder.path();
  Trainer trainer{test::small_context(), options};
  // Both linear layers that are large enough, of which the first has five parts.
  EXPECT_GT(trainer.plan().far_runs.size(), 2U);
  const TrainingSummary summary = trainer.run();
  EXPECT_EQ(summary.weights_sha256, resident_weights_with(optimizer_named(optimizer)));
  EXPECT_LE(summary.near_peak, summary.budget);
}

TEST(FarUpdateOfARun, ChangesNoBitWithAnyOptimizer) {
  for (const OptimizerOptions& optimizer : test::every_optimizer()) {
    const TrainerOptions options = linear_options(MemoryMode::kCopy, UpdateRule::kFar, optimizer);
    EXPECT_EQ(Trainer(test::small_context(), options).run().weights_sha256,
              resident_weights_with(optimizer))
        << test::printed(optimizer);
  }
}

// Whoever initialises or saves a block needs all its parts at once: more than a task does.
TEST(FarUpdateOfARun, HasRoomForAWholeBlockAtTheSmallestBudget) {
  for (const MemoryMode mode : {MemoryMode::kManaged, MemoryMode::kCopy}) {
    TrainerOptions options = linear_options(mode, UpdateRule::kFar, optimizer_named("adam"));
    options.memory.budget = "min";
    const TrainingSummary summary = Trainer{test::small_context(), options}.run();
    EXPECT_EQ(summary.weights_sha256, resident_weights_with(optimizer_named("adam")));
    EXPECT_LE(summary.near_peak, summary.budget);
  }
}

std::string name_of_case(const testing::TestParamInfo<Case>& info) {
  const auto& [mode, planner, optimizer, is_in_file] = info.param;
  return std::string{to_string(mode)} + "_" + planner + "_" + optimizer +
         (is_in_file ? "_file" : "_ram");
}

INSTANTIATE_TEST_SUITE_P(Modes, FarUpdate,
                         testing::Combine(testing::Values(MemoryMode::kManaged, MemoryMode::kCopy),
                                          testing::Values("joint", "capacity"),
                                          testing::Values("sgd", "adam", "adamw"), testing::Bool()),
                         name_of_case);

TEST(FarUpdateOfARun, GoesOnFromACheckpoint) {
  for (const MemoryMode mode : {MemoryMode::kManaged, MemoryMode::kCopy}) {
    const test::TemporaryFolder folder;
    TrainerOptions options = linear_options(mode, UpdateRule::kFar, optimizer_named("adam"), 2);
    options.checkpoint.folder = folder.file("checkpoint");
    options.training.checkpoint_every = 1;
    Trainer{test::small_context(), options}.run();
    options.checkpoint.resume = true;
    options.training.steps = 4;
    EXPECT_EQ(Trainer(test::small_context(), options).run().weights_sha256,
              resident_weights_with(optimizer_named("adam")));
  }
}

// Where all is near, updates are, too, whatever the plan of the checkpoint says.
TEST(FarUpdateOfARun, GoesOnWhereThereIsNoFarSide) {
  for (const MemoryMode mode : {MemoryMode::kManaged, MemoryMode::kCopy}) {
    const test::TemporaryFolder folder;
    TrainerOptions options = linear_options(mode, UpdateRule::kFar, optimizer_named("adam"), 2);
    options.checkpoint.folder = folder.file("checkpoint");
    Trainer{test::small_context(), options}.run();
    options = linear_options(MemoryMode::kResident, UpdateRule::kAuto, optimizer_named("adam"), 4);
    options.checkpoint = {.folder = folder.file("checkpoint"), .resume = true};
    const TrainingSummary summary = Trainer{test::small_context(), options}.run();
    EXPECT_EQ(summary.steps_run, 2U);
    EXPECT_LE(summary.near_peak, summary.budget);
    EXPECT_EQ(summary.weights_sha256, resident_weights_with(optimizer_named("adam")));
  }
}

// As on a processor with other kernels: the updates, which were not timed, are those of no other
// steps.
TEST(FarUpdateOfARun, GoesOnWhereThePlanIsOfOtherTasks) {
  const test::TemporaryFolder folder;
  TrainerOptions options =
      linear_options(MemoryMode::kCopy, UpdateRule::kAuto, optimizer_named("adam"), 2);
  options.memory.budget = "min";
  options.checkpoint.folder = folder.path();
  {
    Trainer first{test::small_context(), options};
    ASSERT_FALSE(first.plan().far_runs.empty());
    first.run();
  }
  const std::string plan = R"({"graph": 1, "runs": []})";
  std::ofstream{folder.path() / plan_file(2)} << plan;
  nlohmann::json manifest = nlohmann::json::parse(std::ifstream{folder.path() / kNewestManifest});
  manifest["plans"][0]["bytes"] = plan.size();
  manifest["plans"][0]["sha256"] = sha256_of(plan);
  for (const auto& name : {std::string{kNewestManifest}, manifest_file(2)}) {
    std::ofstream{folder.path() / name} << sealed(manifest);
  }
  options.checkpoint.resume = true;
  options.training.steps = 4;
  std::vector<std::string> warnings;
  Trainer second{test::small_context(), options, {.on_warning = [&](const std::string& sentence) {
                   warnings.push_back(sentence);
                 }}};
  EXPECT_EQ(second.run().weights_sha256, resident_weights_with(optimizer_named("adam")));
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings[0].find("does not fit the steps"), std::string::npos) << warnings[0];
}

// One that updated near goes on with updates on the far side, and the other way round: with the
// plan of the other side, as the folder's own is of the side that it left off at.
class GoesOnWhereAnotherSideLeftOff : public testing::Test {
 protected:
  // Runs until `steps`, with the plan of `update`.
  TrainingSummary run(UpdateRule update, std::uint64_t steps) {
    TrainerOptions options =
        linear_options(MemoryMode::kCopy, update, optimizer_named("sgd"), steps);
    options.planning.plan_file = plan_file(update);
    options.checkpoint.folder = folder_.file("checkpoint");
    options.checkpoint.resume = steps > 2;
    Trainer trainer{test::small_context(), options};
    EXPECT_EQ(trainer.plan().far_runs.empty(), update == UpdateRule::kNear);
    return trainer.run();
  }
  std::string plan_file(UpdateRule update) {
    TrainerOptions options = linear_options(MemoryMode::kCopy, update, optimizer_named("sgd"));
    options.planning.state = StateRule::kFar;
    const Trainer trainer{test::small_context(), options};
    const std::string path = folder_.file(update == UpdateRule::kFar ? "far" : "near");
    std::ofstream{path} << prefetch::to_json(trainer.plan(), trainer.graph());
    return path;
  }
  test::TemporaryFolder folder_;
};

TEST_F(GoesOnWhereAnotherSideLeftOff, WithTheSameBits) {
  run(UpdateRule::kNear, 2);
  run(UpdateRule::kFar, 3);
  EXPECT_EQ(run(UpdateRule::kNear, 4).weights_sha256,
            resident_weights_with(optimizer_named("sgd")));
}

TEST_F(GoesOnWhereAnotherSideLeftOff, OnlyAsAsked) {
  const auto refusal_with = [&](UpdateRule of_plan, UpdateRule wanted) {
    TrainerOptions options = linear_options(MemoryMode::kCopy, wanted, optimizer_named("sgd"));
    options.planning.plan_file = plan_file(of_plan);
    return test::refusal([&] { Trainer(test::small_context(), options).run(); });
  };
  EXPECT_TRUE(refusal_with(UpdateRule::kNear, UpdateRule::kFar)
                  .ends_with("near updates weights in near memory; leave out --update far"));
  EXPECT_TRUE(refusal_with(UpdateRule::kFar, UpdateRule::kNear)
                  .ends_with("far updates weights on the far side; leave out --update near"));
}

std::string refusal_of(TrainerOptions options) {
  return test::refusal([&] { Trainer(test::small_context(), std::move(options)).run(); });
}

TEST(FarUpdateOfARun, IsRefusedWhereItCannotBe) {
  const OptimizerOptions adam = optimizer_named("adam");
  TrainerOptions options = linear_options(MemoryMode::kResident, UpdateRule::kFar, adam);
  EXPECT_NE(refusal_of(options).find("no far memory"), std::string::npos);
  options = linear_options(MemoryMode::kCopy, UpdateRule::kFar, adam);
  options.planning.planner = "vdnn-all";
  EXPECT_NE(refusal_of(options).find("leave out --update far"), std::string::npos);
  options.planning.planner = "on-demand";
  EXPECT_NE(refusal_of(options).find("plans no updates on the far side"), std::string::npos);
  options = linear_options(MemoryMode::kCopy, UpdateRule::kFar, adam);
  options.planning.state = StateRule::kNear;
  EXPECT_NE(refusal_of(options).find("leave out --state near"), std::string::npos);
}

TEST(FarUpdateOfARun, GoesWithMicroBatches) {
  const auto weights = [](MemoryMode mode, UpdateRule update) {
    TrainerOptions options = linear_options(mode, update, optimizer_named("adam"));
    options.planning.micro_batches.size = 1;
    Trainer trainer{test::small_context(), options};
    EXPECT_EQ(trainer.plan().far_runs.empty(), update != UpdateRule::kFar);
    return trainer.run().weights_sha256;
  };
  const std::string resident = weights(MemoryMode::kResident, UpdateRule::kAuto);
  for (const MemoryMode mode : {MemoryMode::kManaged, MemoryMode::kCopy}) {
    EXPECT_EQ(weights(mode, UpdateRule::kFar), resident) << to_string(mode);
  }
}

}  // namespace
}  // namespace spillway
