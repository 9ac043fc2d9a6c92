#include "src/train/checkpoint/checkpoint_choice.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "src/io/file_digest.h"
#include "src/ops/optimizers.h"
#include "tests/src/train/checkpoint_fixture.h"

namespace spillway {
namespace {

using test::refusal;

class CheckpointChoice : public test::CheckpointFixture {
 protected:
  [[nodiscard]] std::string no_other() const {
    return "; no other checkpoint in " + folder.path().string() +
           " verifies: begin anew in another --checkpoint folder";
  }

  // Writes a number into the last tensor of step 1, and the digests that go with it.
  void plant(float number) const {
    std::string text = content("step-1.safetensors");
    const std::size_t place = text.size() - sizeof(number);
    text.replace(place, sizeof(number), reinterpret_cast<const char*>(&number), sizeof(number));
    overwrite("step-1.safetensors", text);
    nlohmann::json tensors = description()["tensors"];
    tensors["sha256"] = sha256_of(text);
    const std::size_t bytes = 3 * sizeof(float);  // of fc.momentum.bias
    tensors["sha256_of_each"]["fc.momentum.bias"] = sha256_of(text.substr(text.size() - bytes));
    tamper("tensors", tensors);
  }
};

TEST_F(CheckpointChoice, SaysThatThereIsNone) {
  EXPECT_EQ(refused(), "there is no checkpoint in " + folder.path().string() +
                           "; give the folder of a train --checkpoint");
}

TEST_F(CheckpointChoice, RefusesAnotherTrainingAndSaysInWhatItDiffers) {
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
  EXPECT_EQ(
      refused(other),
      where +
          "layers_sha256 is not that of network 'small 1x8x8, 3 classes' as it is now: its "
          "layers have been changed since, or another --dropout was given; train it as it was, "
          "or give another --checkpoint folder");
  other = key;
  other.seed = 8;
  EXPECT_EQ(refused(other).find(where + "seed is 7, but"), 0U);
  other = key;
  other.data = "elsewhere";
  EXPECT_EQ(refused(other), "accepted") << "it is the content that counts";
  other.data_sha256 = "23ce";
  EXPECT_EQ(refused(other).find(where + "data is 'synthetic', whose images and labels differ"), 0U);
}

// Every file of a checkpoint, and every byte of its manifests that says anything.
TEST_F(CheckpointChoice, FindsAFlippedBitAnywhere) {
  checkpoints.set_plan({}, step.graph);
  save(1);
  for (const std::string name : {"step-1.safetensors", "step-1-plan.json", "checkpoint.json"}) {
    const std::string whole = content(name);
    const std::string manifest = content("step-1.json");
    if (name == "checkpoint.json") overwrite("step-1.json", "");  // the copy of it is not to help
    const bool is_text = name != "step-1.safetensors";
    for (std::size_t place = 0; place < whole.size(); place += is_text ? 7 : 61) {
      if (is_text && (whole[place] == ' ' || whole[place] == '\n'))
        continue;  // as good as another blank
      flip_bit(name, place);
      const std::string sentence = refusal([&] { return choose(); });
      EXPECT_EQ(sentence.find(folder.path().string()), 0U) << name << " " << place << sentence;
      overwrite(name, whole);
    }
    overwrite("step-1.json", manifest);
  }
  EXPECT_EQ(choose().manifest.checkpoint.step, 1U);
}

TEST_F(CheckpointChoice, NamesTheTensorThatIsDamaged) {
  save(1);
  const std::string whole = content("step-1.safetensors");
  const std::string path = folder.file("step-1.safetensors");
  flip_bit("step-1.safetensors", whole.size() - 2);
  EXPECT_EQ(refused(),
            path + " does not match its digest: tensor 'fc.momentum.bias' is damaged" + no_other());
  overwrite("step-1.safetensors", whole);
  flip_bit("step-1.safetensors", whole.find("norm.weight"));  // to a name of the same length
  EXPECT_EQ(refused().find(path + " does not match its digest: tensor 'o"), 0U) << refused();
  overwrite("step-1.safetensors", whole.substr(0, whole.size() - 1));
  EXPECT_EQ(refused().find(path + " has " + std::to_string(whole.size() - 1) + " bytes, not the " +
                           std::to_string(whole.size()) + " that were written"),
            0U)
      << refused();
}

TEST_F(CheckpointChoice, RefusesNumbersThatAreNotFinite) {
  save(1);
  plant(0.5F);
  EXPECT_EQ(refused(), "accepted");
  for (const float number :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    plant(number);
    EXPECT_EQ(refused(), "tensor 'fc.momentum.bias' of " + folder.file("step-1.safetensors") +
                             " holds a number that is not finite" + no_other());
  }
}

TEST_F(CheckpointChoice, RefusesAStepThatNoTrainingReaches) {
  save(1);
  tamper("step", std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(refused().find(folder.file("checkpoint.json") + ": step is larger than "), 0U)
      << refused();
}

TEST_F(CheckpointChoice, RefusesACheckpointWithoutDigests) {
  overwrite("checkpoint.json",
            R"({"format": "spillway-checkpoint", "version": 3, "network": "small"})");
  EXPECT_EQ(refused(), folder.file("checkpoint.json") +
                           " is of version 3, which has no digests, so that nothing can prove it "
                           "whole; end that training with the spillway that began it, or begin "
                           "anew in another --checkpoint folder");
  overwrite("checkpoint.json", sealed({{"format", "spillway-checkpoint"}, {"version", 5}}));
  EXPECT_EQ(refused(),
            folder.file("checkpoint.json") + ": version is 5; this program reads version 4");
}

TEST_F(CheckpointChoice, RefusesADamagedManifest) {
  save(1);
  overwrite("step-1.json", "");
  overwrite("checkpoint.json", "{\"format\": \"spillway-checkpoint\", ");
  EXPECT_NE(refused().find("checkpoint.json: not JSON, at byte"), std::string::npos);
  overwrite("checkpoint.json", "{\"format\": \"spillway-checkpoint\", \"version\": 4}");
  EXPECT_NE(refused().find("checkpoint.json does not match its own digest"), std::string::npos);
  overwrite("checkpoint.json", sealed({{"format", "spillway-checkpoint"}, {"version", 4}}));
  EXPECT_NE(refused().find("checkpoint.json: network is missing"), std::string::npos);
}

TEST_F(CheckpointChoice, RefusesMissingTensorsAndTensorsElsewhere) {
  save(1);
  std::filesystem::remove(folder.path() / "step-1.safetensors");
  EXPECT_NE(refused().find("step-1.safetensors"), std::string::npos);
  for (const char* name : {"../step-1.safetensors", "/etc/passwd", "..", ".", ""}) {
    nlohmann::json tensors = description()["tensors"];
    tensors["file"] = name;
    tamper("tensors", tensors);
    EXPECT_NE(refused().find("tensors.file is no file name"), std::string::npos) << refused();
  }
}

// Opening a named pipe that nobody writes to would wait for ever.
TEST_F(CheckpointChoice, WaitsForNoPipe) {
  save(1);
  for (const char* name : {"checkpoint.json", "step-1.json", "step-1.safetensors"}) {
    std::filesystem::rename(folder.file(name), folder.file("away"));
    ASSERT_EQ(::mkfifo(folder.file(name).c_str(), 0600), 0);
    const bool has_copy = std::string{name} != "step-1.safetensors";
    EXPECT_EQ(refusal([&] { return choose(); }),
              has_copy
                  ? "accepted"
                  : "cannot read " + folder.file(name) + ": it is no ordinary file" + no_other());
    std::filesystem::rename(folder.file("away"), folder.file(name));
  }
}

TEST_F(CheckpointChoice, RefusesSettingsThatNoTrainingHas) {
  const std::string where = folder.file("checkpoint.json") + ": ";
  const auto settings = [&] {
    const std::string sentence = refusal([&] { return read_settings(folder.path()); });
    return sentence.substr(0, sentence.find(no_other()));
  };
  save(1);
  const nlohmann::json at_step_one = description();
  tamper("threads", 0);
  EXPECT_EQ(settings(), where + "threads is zero");
  tamper("threads", 1 << 20);
  EXPECT_EQ(settings(), where + "threads is larger than 1024");
  tamper("threads", 1);
  tamper("precision", "fp8");
  EXPECT_EQ(settings(), where + "precision is not fp32, tf32 or bf16");
  tamper("precision", "bf16");
  nlohmann::json changed = description()["optimizer"];
  changed["momentum"] = -1;
  tamper("optimizer", changed);
  EXPECT_EQ(settings(), where + "optimizer.momentum is negative or too large");
  changed["momentum"] = 0;
  changed["clip_norm"] = -1;
  tamper("optimizer", changed);
  EXPECT_EQ(settings(), where + "optimizer.clip_norm is negative or too large");
  changed["clip_norm"] = 0;
  changed["name"] = "adagrad";
  tamper("optimizer", changed);
  EXPECT_TRUE(settings().starts_with(where + "optimizer.name is 'adagrad', not sgd, adam, "));
  EXPECT_TRUE(settings().ends_with(" or " + std::string{optimizers().back().name})) << settings();
  tamper("optimizer", {{"name", "adam"}, {"beta1", 1}});
  EXPECT_EQ(settings(), where + "optimizer.beta1 is not below 1");
  tamper("optimizer", at_step_one["optimizer"]);
  tamper("dropout", 1);
  EXPECT_EQ(settings(), where + "dropout is not below 1");
}

// Behind digests that fit. Each row is a value of a manifest that no flag can give.
TEST_F(CheckpointChoice, RefusesNumbersThatNoFlagTakes) {
  struct Row {
    std::string place;  // a JSON pointer
    nlohmann::json value;
    std::string complaint;
  };
  constexpr std::uint64_t kHalf = std::uint64_t{1} << 63U;
  const std::vector<Row> rows{
      {"/batch", 0, "batch is zero"},
      {"/batch", 1048577, "batch is larger than 1048576"},
      {"/batch", kHalf, "batch is larger than 1048576"},
      {"/batch", -1, "batch is no whole number from 0 up"},
      {"/learning_rate/rate", 1e39, "learning_rate.rate is too large"},
      {"/learning_rate/step_factor", 1e39, "learning_rate.step_factor is too large"},
      {"/learning_rate/final_rate", 1e300, "learning_rate.final_rate is too large"},
      {"/learning_rate/warmup_steps", 40,
       "learning_rate.warmup_steps leaves nothing of the cosine"},
      {"/optimizer/momentum", 1.5, "optimizer.momentum is above 1"},
      {"/optimizer/momentum", 1e-46, "optimizer.nesterov goes with a momentum"},
      {"/optimizer/weight_decay", 1e39, "optimizer.weight_decay is too large"},
      {"/optimizer/clip_norm", 1e-300, "optimizer.clip_norm is not above 0"},
      {"/optimizer/clip_norm", 1e39, "optimizer.clip_norm is too large"},
      {"/label_smoothing", 0.99999999, "label_smoothing is not below 1"},
      {"/dropout", 0.99999999, "dropout is not below 1"},
      {"/average_decay", 1, "average_decay is not below 1"},
      {"/mixing/mixup", 1000.5, "mixing.mixup is above 1000"},
      {"/best", nlohmann::json::object({{"step", kHalf}}),
       "best.step is larger than 9007199254740992"},
      {"/last_evaluation", nlohmann::json::object({{"step", kHalf}, {"loss", 0}}),
       "last_evaluation.step is larger than 9007199254740992"}};
  save(1);
  const nlohmann::json whole = description();
  for (const Row& row : rows) {
    nlohmann::json changed = whole;
    changed[nlohmann::json::json_pointer{row.place}] = row.value;
    overwrite("checkpoint.json", sealed(changed));
    overwrite("step-1.json", sealed(changed));
    EXPECT_EQ(refused(), folder.file("checkpoint.json") + ": " + row.complaint + no_other());
  }
}

// Programs of before wrote no last evaluation; one that is not a number is kept as such.
TEST_F(CheckpointChoice, ReadsALastEvaluationWhereThereIsOne) {
  const auto kept = [&] { return choose().manifest.checkpoint.last; };
  save(1);
  EXPECT_EQ(kept(), std::nullopt);
  Checkpoint moment = at_step(1);
  moment.last = LastEvaluation{.step = 1, .loss = 0.25, .accuracy = 0.5, .top5 = 0.75};
  checkpoints.save(moment, state);
  EXPECT_EQ(kept(), moment.last);
  moment.last = LastEvaluation{.step = 1, .loss = std::numeric_limits<double>::quiet_NaN()};
  checkpoints.save(moment, state);
  EXPECT_TRUE(std::isnan(kept()->loss));
  EXPECT_EQ(kept()->top5, std::nullopt);
}

TEST_F(CheckpointChoice, RefusesSchedulesThatNoTrainingHas) {
  const std::string where = folder.file("checkpoint.json") + ": ";
  save(1);
  nlohmann::json changed = description()["learning_rate"];
  changed["name"] = "linear";
  tamper("learning_rate", changed);
  EXPECT_EQ(refused(),
            where + "learning_rate.name is 'linear', not constant, step, multistep or cosine" +
                no_other());
  changed["name"] = "step";
  changed["step_every"] = 0;
  tamper("learning_rate", changed);
  EXPECT_EQ(refused(), where + "learning_rate.step_every is zero" + no_other());
  changed["name"] = "multistep";
  for (const std::vector<int>& milestones :
       std::vector<std::vector<int>>{{}, {0, 3}, {3, 3}, {5, 3}}) {
    changed["milestones"] = milestones;
    tamper("learning_rate", changed);
    EXPECT_EQ(
        refused(),
        where + "learning_rate.milestones are not steps, each above the one before" + no_other());
  }
}

TEST_F(CheckpointChoice, VerifyingFindsWhatIsWrongInEach) {
  EXPECT_EQ(refusal([&] { return verify_checkpoints(folder.path()); }),
            "there is no checkpoint in " + folder.path().string());
  save(1);
  save(2);
  flip_bit("step-1.safetensors");
  const std::vector<CheckpointFinding> findings = verify_checkpoints(folder.path());
  ASSERT_EQ(findings.size(), 3U);
  EXPECT_EQ(findings[0].manifest, "checkpoint.json");
  EXPECT_EQ(findings[0].step, 2U);
  EXPECT_EQ(findings[0].tensors, 14U);
  EXPECT_FALSE(findings[0].problem || findings[1].problem);
  EXPECT_EQ(findings[2].manifest, "step-1.json");
  ASSERT_TRUE(findings[2].problem.has_value());
  EXPECT_NE(findings[2].problem->find("step-1.safetensors does not match"), std::string::npos);
}

}  // namespace
}  // namespace spillway
