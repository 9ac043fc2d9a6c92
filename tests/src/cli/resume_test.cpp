// What a training that goes on has in common with the one before.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/src/cli/program.h"
#include "tests/src/cli/refused.h"
#include "tests/temporary_folder.h"

namespace spillway {
namespace {

using nlohmann::json;
using test::expect_refused;
using test::joined;
using test::Program;
using test::run_spillway;
using test::TemporaryFolder;

class Resumed : public testing::Test {
 protected:
  [[nodiscard]] std::string checkpoint() const { return folder_.file("checkpoint"); }
  [[nodiscard]] static json train(const Program::Arguments& flags) {
    return summary_of(run_spillway(joined(
        {"train", "--net", "lenet", "--batch", "8", "--conv-algorithm", "direct", "--json", "-"},
        flags)));
  }
  [[nodiscard]] Program::Arguments kept(const Program::Arguments& flags) const {
    return joined({"--checkpoint", checkpoint()}, flags);
  }
  [[nodiscard]] static std::string hash(const json& summary) {
    return summary.value("weights_sha256", "none");
  }

  TemporaryFolder folder_;
};

TEST_F(Resumed, TrainingKeepsItsSettings) {
  const Program::Arguments settings{"--momentum", "0.5",  "--weight-decay", "0.01",
                                    "--lr",       "0.03", "--threads",      "1"};
  const json whole = train(joined(settings, {"--steps", "6"}));
  static_cast<void>(train(joined(kept(settings), {"--steps", "3"})));

  const json resumed = train(kept({"--resume", "--steps", "6"}));

  EXPECT_EQ(hash(resumed), hash(whole));
  EXPECT_EQ(resumed.value("learning_rate", json{}).dump(), "0.03");
  const std::string backend = resumed.value("backend", "");
  EXPECT_TRUE(backend.ends_with(", 1 thread")) << backend;
}

TEST_F(Resumed, TrainingTakesTheSettingsThatAreGivenAnew) {
  static_cast<void>(train(kept({"--momentum", "0.5", "--steps", "2"})));

  const json resumed = train(kept({"--resume", "--momentum", "0.25", "--steps", "4"}));

  EXPECT_EQ(resumed.value("steps_run", 0), 2);
  json saved;
  std::ifstream{checkpoint() + "/checkpoint.json"} >> saved;
  EXPECT_EQ(saved.value("optimizer", json{}).value("momentum", json{}).dump(), "0.25");
}

// Adam's step count, moments, rates and the cosine's length come from the checkpoint.
TEST_F(Resumed, TrainingKeepsItsOptimizerAndItsPlaceInTheSchedule) {
  const Program::Arguments settings{"--optimizer",    "adamw",  "--beta1",        "0.8",
                                    "--lr",           "0.002",  "--schedule",     "cosine",
                                    "--cosine-steps", "5",      "--warmup-steps", "2",
                                    "--final-lr",     "0.0001", "--weight-decay", "0.02"};
  const json whole = train(joined(settings, {"--steps", "6"}));
  static_cast<void>(train(joined(kept(settings), {"--steps", "3"})));

  const json resumed = train(kept({"--resume", "--steps", "6"}));

  EXPECT_EQ(hash(resumed), hash(whole));
  EXPECT_EQ(resumed.value("optimizer", json{}), whole.value("optimizer", json{"none"}));
  EXPECT_EQ(resumed.value("schedule", json{}), whole.value("schedule", json{"none"}));
}

// Where no length is given, it is that of the training that began.
TEST_F(Resumed, TrainingGoesOnAfterItsCosineAtTheFinalRate) {
  static_cast<void>(train(kept({"--steps", "2", "--schedule", "cosine", "--final-lr", "0.001"})));

  const test::Outcome outcome =
      run_spillway(joined({"train", "--net", "lenet", "--batch", "8", "--json", "-"},
                          kept({"--resume", "--steps", "3"})));

  EXPECT_EQ(summary_of(outcome).value("schedule", json{}).value("cosine_steps", 0), 2);
  EXPECT_EQ(json_lines(outcome).front().value("learning_rate", json{}).dump(), "0.001");
}

TEST_F(Resumed, TrainingIsNotThatOfAnotherOptimizer) {
  static_cast<void>(train(kept({"--optimizer", "adam", "--steps", "1"})));
  expect_refused(
      1,
      joined({"train", "--net", "lenet", "--batch", "8"}, kept({"--resume", "--optimizer", "sgd"})),
      {"the checkpoint is of a training with --optimizer adam; give that"});
}

TEST_F(Resumed, TrainingKeepsAPlanThatItWasGiven) {
  static_cast<void>(train(kept({"--steps", "2", "--budget", "100%"})));
  static_cast<void>(
      train({"--checkpoint", folder_.file("other"), "--steps", "1", "--budget", "min"}));
  const auto text = [](const std::string& path) {
    json plan;
    std::ifstream{path} >> plan;
    return plan.dump();
  };
  const std::string other = folder_.file("other/plan.json");
  ASSERT_NE(text(checkpoint() + "/plan.json"), text(other));

  static_cast<void>(train(kept({"--resume", "--steps", "3", "--plan", other})));

  EXPECT_EQ(text(checkpoint() + "/plan.json"), text(other));
}

TEST_F(Resumed, TrainingIsAskedForWhereAFolderHoldsACheckpoint) {
  const Program::Arguments lenet{"train", "--net", "lenet", "--batch", "8"};
  static_cast<void>(train(kept({"--steps", "2"})));
  expect_refused(1, joined(lenet, kept({"--steps", "2"})),
                 {"there is a checkpoint in " + checkpoint(), "give --resume"});

  const json resumed = train(kept({"--resume", "--steps", "3"}));

  EXPECT_EQ(resumed.value("steps_run", 0), 1);
}

}  // namespace
}  // namespace spillway
