#include "src/train/checkpoint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "prefetch/files/plan_file.h"
#include "src/host/host_backend.h"
#include "tests/refusal.h"
#include "tests/src/small_training.h"
#include "tests/temporary_folder.h"

namespace spillway {
namespace {

using test::refusal;

const CheckpointKey kKey{.network = "small 1x8x8, 3 classes",
                         .layers = "01ab",
                         .data = "synthetic",
                         .batch = 4,
                         .seed = 7};

constexpr LearningRateOptions kRates{.rate = 0.05F,
                                     .schedule = Schedule::kCosine,
                                     .warmup_steps = 2,
                                     .step_every = 3,
                                     .step_factor = 0.3F,
                                     .final_rate = 0.002F,
                                     .cosine_steps = 40};
constexpr SgdOptions kSgd{.momentum = 0.8F, .weight_decay = 1e-4F, .nesterov = true};

Checkpoint at_step(std::uint64_t step) {
  return {.key = kKey,
          .settings = {.learning_rate = kRates,
                       .optimizer = kSgd,
                       .threads = 3,
                       .precision = Precision::kTf32,
                       .deterministic = true},
          .step = step};
}

class CheckpointFolderTest : public testing::Test {
 protected:
  [[nodiscard]] State make_state() { return {step, backend, device.memory()}; }
  // The state of step `seed` is that of this seed.
  void save(std::uint64_t seed) {
    state.initialise(seed);
    checkpoints.save(at_step(seed), state);
  }
  // What the state of step `seed` is known by.
  [[nodiscard]] std::string hash(std::uint64_t seed) {
    State other = make_state();
    other.initialise(seed);
    return other.sha256();
  }
  [[nodiscard]] std::uint64_t load() { return checkpoints.load(key, state); }
  [[nodiscard]] std::string refused(const CheckpointKey& wanted) {
    return refusal([&] { return checkpoints.load(wanted, state); });
  }
  [[nodiscard]] nlohmann::json description() const {
    nlohmann::json json;
    std::ifstream{folder.file("checkpoint.json")} >> json;
    return json;
  }
  void tamper(const std::string& name, const nlohmann::json& value) const {
    nlohmann::json json = description();
    json[name] = value;
    overwrite("checkpoint.json", json.dump());
  }
  void overwrite(const std::string& name, const std::string& text) const {
    std::ofstream{folder.file(name)} << text;
  }
  [[nodiscard]] std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator{folder.path()}) {
      names.push_back(entry.path().filename());
    }
    std::ranges::sort(names);
    return names;
  }
  test::TemporaryFolder folder;
  um::HostDevice device;
  host::HostBackend backend{1};
  Step step = make_training_step(test::small_network(), backend, {.batch = 4});
  State state = make_state();
  CheckpointFolder checkpoints{folder.path()};
  CheckpointKey key = kKey;
};

TEST_F(CheckpointFolderTest, GivesBackWhatWasSaved) {
  save(12);
  state.initialise(1);
  EXPECT_EQ(load(), 12U);
  EXPECT_EQ(state.sha256(), hash(12));
}

TEST_F(CheckpointFolderTest, KeepsAllThatTheBitsOfATrainingDependOn) {
  save(12);
  const KeptSettings kept = read_settings(folder.path());
  EXPECT_EQ(kept.learning_rate, kRates);
  EXPECT_EQ(kept.optimizer, OptimizerOptions{kSgd});
  EXPECT_EQ(kept.threads, 3U);
  EXPECT_EQ(kept.precision, Precision::kTf32);
  EXPECT_TRUE(kept.deterministic);
}

TEST_F(CheckpointFolderTest, KeepsTheOptimizerThereIs) {
  for (const bool decoupled : {false, true}) {
    const AdamOptions adam{.beta1 = 0.8,
                           .beta2 = 0.99,
                           .epsilon = 1e-6F,
                           .weight_decay = 0.02F,
                           .decoupled = decoupled};
    Checkpoint checkpoint = at_step(1);
    checkpoint.settings.optimizer = adam;
    checkpoints.save(checkpoint, state);
    EXPECT_EQ(read_settings(folder.path()).optimizer, OptimizerOptions{adam});
  }
}

TEST_F(CheckpointFolderTest, WritesNumbersAsPeopleDo) {
  save(12);
  EXPECT_EQ(description()["learning_rate"]["rate"].dump(), "0.05");
  EXPECT_EQ(description()["optimizer"]["momentum"].dump(), "0.8");
  EXPECT_EQ(description()["optimizer"]["weight_decay"].dump(), "0.0001");
}

TEST_F(CheckpointFolderTest, KeepsTheNewestOnly) {
  save(1);
  save(2);
  EXPECT_EQ(load(), 2U);
  EXPECT_EQ(files(), (std::vector<std::string>{"checkpoint.json", "step-2.safetensors"}));
}

TEST_F(CheckpointFolderTest, HoldsTheOldOneWhenKilledBetweenTensorsAndDescription) {
  save(1);
  state.initialise(2);
  state.save(folder.path() / "step-2.safetensors");
  overwrite("checkpoint.json.partial", "{\"format\": \"spill");
  EXPECT_EQ(load(), 1U);
  EXPECT_EQ(state.sha256(), hash(1));
  save(3);  // and goes on from there
  EXPECT_EQ(load(), 3U);
  EXPECT_EQ(files(), (std::vector<std::string>{"checkpoint.json", "step-3.safetensors"}));
}

TEST_F(CheckpointFolderTest, IsEmptyUntilTheFirstCheckpoint) {
  checkpoints.expect_empty();
  overwrite("plan.json", "{}");  // of a training that was killed before its first checkpoint
  checkpoints.expect_empty();
  save(1);
  const std::string sentence = "there is a checkpoint in " + folder.path().string() +
                               "; give --resume to go on from it, or another folder";
  EXPECT_EQ(refusal([&] { checkpoints.expect_empty(); }), sentence);
  EXPECT_EQ(refusal([&] { expect_no_checkpoint(folder.path()); }), sentence);
}

// NAME_MAX is 255.
TEST_F(CheckpointFolderTest, SaysThatItsPathIsTooLong) {
  const std::filesystem::path path = folder.path() / std::string(300, 'x');
  const std::string sentence = um::shortened(
      "cannot look for " + (path / "checkpoint.json").string() + ": File name too long");
  EXPECT_EQ(refusal([&] { expect_checkpoint(path); }), sentence);
  EXPECT_EQ(refusal([&] { expect_no_checkpoint(path); }), sentence);
  EXPECT_EQ(refusal([&] { return CheckpointFolder{path}; }),
            um::shortened("cannot make the folder " + path.string() + ": File name too long"));
}

TEST_F(CheckpointFolderTest, ReplacesItsPlanAsAWhole) {
  overwrite("plan.json", "an older plan");
  prefetch::Plan plan;
  plan.graph = prefetch::fingerprint(step.graph);
  plan.planner = "test";
  plan.runs = prefetch::runs_in_order(step.graph);
  checkpoints.save_plan(0, 1, plan, step.graph);
  const auto read =
      prefetch::read_plan(prefetch::JsonFile{checkpoints.plan_path(0, 1)}, step.graph);
  EXPECT_EQ(read.planner, "test");
  EXPECT_EQ(read.runs, plan.runs);
  EXPECT_EQ(files(), std::vector<std::string>{"plan.json"});
}

TEST_F(CheckpointFolderTest, RefusesAnotherTrainingAndSaysInWhatItDiffers) {
  save(1);
  CheckpointKey other = key;
  other.batch = 8;
  const std::string where = folder.file("checkpoint.json") + ": ";
  EXPECT_EQ(refused(other), where +
                                "batch is 4, but this training's is 8; give the same flags, or "
                                "another --checkpoint folder");
  other = key;
  other.network = "vgg16";
  EXPECT_EQ(refused(other).find(where + "network is 'small 1x8x8, 3 classes', but"), 0U);
  other = key;
  other.layers = "01ac";
  EXPECT_EQ(refused(other),
            where +
                "layers_sha256 is not that of network 'small 1x8x8, 3 classes' as it is now: its "
                "layers have been changed since; train it as it was, or give another --checkpoint "
                "folder");
  other = key;
  other.seed = 8;
  EXPECT_EQ(refused(other).find(where + "seed is 7, but"), 0U);
  other = key;
  other.data = "cifar10";
  EXPECT_EQ(refused(other).find(where + "data is 'synthetic', but"), 0U);
}

TEST_F(CheckpointFolderTest, SaysThatThereIsNone) {
  EXPECT_EQ(refused(key), "there is no checkpoint in " + folder.path().string() +
                              "; train without --resume first");
}

TEST_F(CheckpointFolderTest, RefusesADamagedDescription) {
  save(1);
  overwrite("checkpoint.json", "{\"format\": \"spillway-checkpoint\", ");
  EXPECT_NE(refused(key).find("checkpoint.json: not JSON, at byte"), std::string::npos);
  overwrite("checkpoint.json", "{\"format\": \"spillway-checkpoint\", \"version\": 3}");
  EXPECT_NE(refused(key).find("checkpoint.json: network is missing"), std::string::npos);
}

TEST_F(CheckpointFolderTest, RefusesMissingTensorsAndTensorsElsewhere) {
  save(1);
  std::filesystem::remove(folder.path() / "step-1.safetensors");
  EXPECT_NE(refused(key).find("step-1.safetensors"), std::string::npos);
  tamper("tensors", "../step-1.safetensors");
  EXPECT_NE(refused(key).find("tensors is no file name"), std::string::npos);
}

TEST_F(CheckpointFolderTest, RefusesSettingsThatNoTrainingHas) {
  const std::string where = folder.file("checkpoint.json") + ": ";
  const auto settings = [&] { return read_settings(folder.path()); };
  save(1);
  tamper("threads", 0);
  EXPECT_EQ(refusal(settings), where + "threads is zero");
  tamper("threads", 1 << 20);
  EXPECT_EQ(refusal(settings), where + "threads is larger than 1024");
  tamper("threads", 1);
  tamper("precision", "fp8");
  EXPECT_EQ(refusal(settings), where + "precision is not fp32, tf32 or bf16");
  tamper("precision", "bf16");
  nlohmann::json changed = description()["optimizer"];
  changed["momentum"] = -1;
  tamper("optimizer", changed);
  EXPECT_EQ(refusal(settings), where + "optimizer.momentum is negative or too large");
  changed["name"] = "adagrad";
  tamper("optimizer", changed);
  EXPECT_EQ(refusal(settings), where + "optimizer.name is 'adagrad', not sgd, adam or adamw");
  tamper("optimizer", {{"name", "adam"}, {"beta1", 1}});
  EXPECT_EQ(refusal(settings), where + "optimizer.beta1 is not below 1");
}

TEST_F(CheckpointFolderTest, RefusesSchedulesThatNoTrainingHas) {
  const std::string where = folder.file("checkpoint.json") + ": ";
  const auto settings = [&] { return read_settings(folder.path()); };
  save(1);
  nlohmann::json changed = description()["learning_rate"];
  changed["name"] = "linear";
  tamper("learning_rate", changed);
  EXPECT_EQ(refusal(settings),
            where + "learning_rate.name is 'linear', not constant, step or cosine");
  changed["name"] = "step";
  changed["step_every"] = 0;
  tamper("learning_rate", changed);
  EXPECT_EQ(refusal(settings), where + "learning_rate.step_every is zero");
}

TEST_F(CheckpointFolderTest, RefusesAFolderThatCannotBeMade) {
  overwrite("file", "x");
  EXPECT_EQ(refusal([&] {
              return CheckpointFolder{folder.path() / "file" / "in it"};
            }).find("cannot make the folder "),
            0U);
}

}  // namespace
}  // namespace spillway
