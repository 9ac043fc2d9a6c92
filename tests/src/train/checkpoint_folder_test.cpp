// Which checkpoint a training goes on from where the newest, or a copy of its manifest, is damaged.
#include "src/train/checkpoint/checkpoint_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "prefetch/files/plan_file.h"
#include "src/io/file_digest.h"
#include "src/train/checkpoint/checkpoint_choice.h"
#include "tests/src/train/checkpoint_fixture.h"

namespace spillway {
namespace {

using test::refusal;
using CheckpointFolderTest = test::CheckpointFixture;
using Files = std::vector<std::string>;

prefetch::Plan plan_of(const prefetch::TaskGraph& graph, const std::string& planner) {
  prefetch::Plan plan;
  plan.graph = prefetch::fingerprint(graph);
  plan.planner = planner;
  plan.runs = prefetch::runs_in_order(graph);
  return plan;
}

TEST_F(CheckpointFolderTest, GivesBackWhatWasSaved) {
  save(12);
  state.initialise(1);
  EXPECT_EQ(load(), 12U);
  EXPECT_EQ(state.sha256(), hash(12));
}

TEST_F(CheckpointFolderTest, KeepsAllThatTheBitsOfATrainingDependOn) {
  save(12);
  const KeptSettings kept = read_settings(folder.path());
  const KeptSettings saved = at_step(12).settings;
  EXPECT_EQ(kept.learning_rate, saved.learning_rate);
  EXPECT_EQ(kept.optimizer, saved.optimizer);
  EXPECT_EQ(kept.mixing, saved.mixing);
  EXPECT_EQ(kept.threads, 3U);
  EXPECT_EQ(kept.precision, Precision::kTf32);
  EXPECT_TRUE(kept.deterministic);
  EXPECT_EQ(kept.dropout, 0.1F);
}

TEST_F(CheckpointFolderTest, KeepsANetworkOfTexts) {
  const auto kept = [&] { return choose_checkpoint(folder.path()).manifest.checkpoint.text_model; };
  Checkpoint checkpoint = at_step(1);
  for (const std::string digest : {"", "45ef"}) {
    checkpoint.text_model = {.network = "first line\nsecond line\n", .byte_pairs = digest};
    checkpoints.save(checkpoint, state);
    EXPECT_EQ(kept(), checkpoint.text_model);
  }
  save(2);
  EXPECT_EQ(kept(), std::nullopt);
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

TEST_F(CheckpointFolderTest, KeepsTheLastTwo) {
  for (const std::uint64_t each : {1, 2, 3}) save(each);
  EXPECT_EQ(load(), 3U);
  EXPECT_EQ(files(), (Files{"checkpoint.json", "step-2.json", "step-2.safetensors", "step-3.json",
                            "step-3.safetensors"}));
}

// A folder in the place of a file, which no user may remove as a file.
TEST_F(CheckpointFolderTest, SavesAlsoWhereAnOldOneCannotBeRemoved) {
  for (const std::uint64_t each : {1, 2}) save(each);
  const std::string old = folder.file("step-1.safetensors");
  std::filesystem::remove(old);
  std::filesystem::create_directory(old);
  save(3);
  EXPECT_EQ(load(), 3U);
  EXPECT_NE(content("step-1.json"), "") << "which says what else there is to remove";
  std::filesystem::remove(old);
  save(4);
  EXPECT_EQ(files(), (Files{"checkpoint.json", "step-3.json", "step-3.safetensors", "step-4.json",
                            "step-4.safetensors"}));
}

TEST_F(CheckpointFolderTest, KeepsAsManyAsItIsAsked) {
  for (const std::uint64_t each : {1, 2}) save(each);
  {
    CheckpointFolder other{folder.file("other"), 1};
    for (const std::uint64_t each : {1, 2}) other.save(at_step(each), state);
  }
  const auto count = [](const std::filesystem::path& path) {
    return std::distance(std::filesystem::directory_iterator{path}, {});
  };
  EXPECT_EQ(count(folder.file("other")), 3) << "checkpoint.json, and two of the checkpoint";
  std::filesystem::remove_all(folder.file("other"));
  EXPECT_EQ(files().size(), 5U);
}

// Also files whose names are like ours.
TEST_F(CheckpointFolderTest, RemovesOnlyWhatItsManifestsList) {
  const Files users{"best.json",          "notes.txt",
                    "step-0.safetensors", "step-best.safetensors",
                    "step-best.json",     "x.0123456789abcdef.partial"};
  for (const std::string& name : users) overwrite(name, "mine");
  for (const std::uint64_t each : {1, 2, 3, 4}) save(each);
  for (const std::string& name : users) EXPECT_EQ(content(name), "mine") << name;
}

// A manifest, such as that of a folder from elsewhere, may name any file.
TEST_F(CheckpointFolderTest, RemovesNoFileThatIsNotOfTheManifestsOwnStep) {
  const Files users{".bashrc",         "plan.json",          "step-1.txt",      "step-01.json",
                    "step-1-plan.jso", "step-1-plan-0.json", "step-2-plan.json"};
  save(1);
  const std::string digest = sha256_of("mine");
  const nlohmann::json mine{{"bytes", 4}, {"sha256", digest}};
  nlohmann::json tensors = description()["tensors"];
  tensors.update(mine);
  tensors["file"] = ".profile";
  tamper("tensors", tensors);
  nlohmann::json plans = nlohmann::json::array();
  for (const std::string& name : users) {
    plans.push_back(mine);
    plans.back()["file"] = name;
  }
  tamper("plans", plans);

  const test::TemporaryFolder other;
  std::filesystem::copy_file(folder.file("step-1.json"), other.file("step-1.json"));
  for (const std::string& name : users) std::ofstream{other.file(name)} << "mine";
  std::ofstream{other.file(".profile")} << "mine";
  CheckpointFolder unpacked{other.path()};
  for (const std::uint64_t each : {3, 4}) unpacked.save(at_step(each), state);
  EXPECT_FALSE(std::filesystem::exists(other.file("step-1.json"))) << "which is outlived";
  for (const std::string& name : users) EXPECT_TRUE(std::filesystem::exists(other.file(name)));
  EXPECT_TRUE(std::filesystem::exists(other.file(".profile")));
}

// A user's file may be named nearly as ours are while they are written.
TEST_F(CheckpointFolderTest, RemovesUnfinishedFilesOfItsOwnNamesAlone) {
  const std::string ending = ".0123456789abcdef.partial";
  const Files ours{"checkpoint.json", "step-7.json", "step-7.safetensors", "step-7-plan-2.json"};
  const Files users{"step-best.json", "step-7-notes.json", "step-.safetensors", "step-07.json"};
  const test::TemporaryFolder other;
  for (const Files& names : {ours, users}) {
    for (const std::string& name : names) std::ofstream{other.file(name + ending)} << "half";
  }
  { const CheckpointFolder opened{other.path()}; }
  for (const std::string& name : ours)
    EXPECT_FALSE(std::filesystem::exists(other.file(name + ending)));
  for (const std::string& name : users)
    EXPECT_TRUE(std::filesystem::exists(other.file(name + ending)));
}

TEST_F(CheckpointFolderTest, RemovesWhatAKilledTrainingLeftUnfinished) {
  save(1);
  const std::string unfinished = "step-2.safetensors.0123456789abcdef.partial";
  overwrite(unfinished, "half");
  EXPECT_EQ(load(), 1U);
  EXPECT_NE(content(unfinished), "") << "while another training holds the folder";
  { const CheckpointFolder other{folder.file("other")}; }
  std::filesystem::rename(folder.file(unfinished), folder.path() / "other" / unfinished);
  { const CheckpointFolder other{folder.file("other")}; }
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "other" / unfinished));
}

TEST_F(CheckpointFolderTest, HoldsTheOldOneWhenKilledBetweenTensorsAndManifest) {
  save(1);
  state.initialise(2);
  state.save(folder.path() / "step-2.safetensors");
  EXPECT_EQ(load(), 1U);
  EXPECT_EQ(state.sha256(), hash(1));
  save(3);  // and goes on from there
  EXPECT_EQ(load(), 3U);
}

TEST_F(CheckpointFolderTest, IsOfOneTrainingAtATime) {
  const std::string sentence = refusal([&] { return CheckpointFolder{folder.path()}; });
  EXPECT_EQ(sentence.find("the folder " + folder.path().string() + " is in use by process "), 0U)
      << sentence;
}

TEST_F(CheckpointFolderTest, IsEmptyUntilTheFirstCheckpoint) {
  checkpoints.expect_empty();
  overwrite("plan.json", "{}");  // of a training that was killed before its first checkpoint
  checkpoints.expect_empty();
  save(1);
  const std::string sentence = "there is a checkpoint of " + key.network + " in " +
                               folder.path().string() +
                               "; give --resume to go on from it, or another folder";
  EXPECT_EQ(refusal([&] { checkpoints.expect_empty(); }), sentence);
  EXPECT_EQ(refusal([&] { expect_no_checkpoint(folder.path()); }), sentence);
  std::filesystem::remove(folder.file("checkpoint.json"));
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

TEST_F(CheckpointFolderTest, SavesItsPlanWithTheCheckpoint) {
  const prefetch::Plan plan = plan_of(step.graph, "test");
  checkpoints.set_plan(plan, step.graph);
  save(1);
  const std::string path = checkpoints.plan_paths(checkpoints.go_on(key)).at(0);
  EXPECT_EQ(path, folder.file("step-1-plan.json"));
  const auto read = prefetch::read_plan(prefetch::JsonFile{path}, step.graph);
  EXPECT_EQ(read.planner, "test");
  EXPECT_EQ(read.runs, plan.runs);
}

TEST_F(CheckpointFolderTest, OneDamagedPlanCostsOneCheckpoint) {
  checkpoints.set_plan(plan_of(step.graph, "test"), step.graph);
  for (const std::uint64_t each : {1, 2}) save(each);
  flip_bit("step-2-plan.json");
  EXPECT_EQ(load(), 1U);
  save(3);
  std::filesystem::remove(folder.file("step-3-plan.json"));
  EXPECT_EQ(load(), 1U);
  save(4);
  EXPECT_EQ(files(),
            (Files{"checkpoint.json", "step-1-plan.json", "step-1.json", "step-1.safetensors",
                   "step-4-plan.json", "step-4.json", "step-4.safetensors"}));
}

// Until it goes, the checkpoint before needs the plan that it was trained with.
TEST_F(CheckpointFolderTest, ReplacesNoPlanOfACheckpoint) {
  checkpoints.set_plan(plan_of(step.graph, "first"), step.graph);
  save(1);
  checkpoints.set_plan(plan_of(step.graph, "second"), step.graph);
  EXPECT_EQ(load(), 1U);
  save(2);
  save(3);
  EXPECT_EQ(load(), 3U);
  const std::string path = checkpoints.plan_paths(checkpoints.go_on(key)).at(0);
  EXPECT_EQ(prefetch::read_plan(prefetch::JsonFile{path}, step.graph).planner, "second");
  EXPECT_FALSE(std::filesystem::exists(folder.file("step-1-plan.json")))
      << "which nothing needs any more";
}

TEST_F(CheckpointFolderTest, WritesNoNumberThatIsNotFinite) {
  save(1);
  state.initialise(2);
  const std::size_t last = element_count(step.state.back().spec) - 1;
  const std::vector<std::byte*> addresses = state.addresses(step);
  backend.import_parameters(
      step.state.back().spec,
      [&] {
        std::vector<float> values(last + 1);
        values[last] = std::numeric_limits<float>::infinity();
        return values;
      }(),
      {&addresses[static_cast<std::size_t>(step.state.back().ids.front())], 1});
  EXPECT_EQ(refusal([&] { checkpoints.save(at_step(2), state); }),
            "tensor 'fc.momentum.bias' holds a number that is not finite: training has diverged; "
            "try a smaller --lr");
  EXPECT_EQ(load(), 1U);
  EXPECT_EQ(files(), (Files{"checkpoint.json", "step-1.json", "step-1.safetensors"}));
}

TEST_F(CheckpointFolderTest, RefusesAManifestOfAnotherStep) {
  save(1);
  save(2);
  overwrite("step-9.json", content("step-1.json"));
  const ChosenCheckpoint chosen = checkpoints.go_on(key);
  EXPECT_EQ(chosen.manifest.checkpoint.step, 2U);
  ASSERT_EQ(chosen.passed_over.size(), 1U);
  EXPECT_EQ(chosen.passed_over[0],
            folder.file("step-9.json") + ": step is not that of the file's name");
}

// A link to itself, for want of something that all users are refused.
TEST_F(CheckpointFolderTest, GivesUpNoCheckpointThatMayBeWhole) {
  save(1);
  save(2);
  const std::string path = folder.file("step-2.safetensors");
  std::filesystem::rename(path, folder.file("away"));
  std::filesystem::create_symlink(path, path);
  EXPECT_EQ(refused(), "cannot read " + path + ": Too many levels of symbolic links");
  std::filesystem::rename(folder.file("away"), path);
  EXPECT_EQ(load(), 2U);
}

TEST_F(CheckpointFolderTest, RefusesAFolderThatCannotBeMade) {
  overwrite("file", "x");
  EXPECT_EQ(refusal([&] {
              return CheckpointFolder{folder.path() / "file" / "in it"};
            }).find("cannot make the folder "),
            0U);
}

using CheckpointFallback = test::CheckpointFixture;

TEST_F(CheckpointFallback, GoesOnFromTheOneBeforeAndSaysWhy) {
  save(1);
  save(2);
  flip_bit("step-2.safetensors");
  const ChosenCheckpoint chosen = checkpoints.go_on(key);
  EXPECT_EQ(chosen.manifest.checkpoint.step, 1U);
  ASSERT_EQ(chosen.passed_over.size(), 1U);
  EXPECT_EQ(chosen.passed_over[0].find(folder.file("step-2.safetensors") + " does not match"), 0U);
  EXPECT_EQ(load(), 1U);
  EXPECT_EQ(state.sha256(), hash(1));
  save(2);  // takes the place of the damaged one
  EXPECT_EQ(load(), 2U);
  EXPECT_TRUE(checkpoints.go_on(key).passed_over.empty());
}

TEST_F(CheckpointFallback, PassedOverCheckpointsGoWithTheNextOne) {
  save(1);
  save(2);
  flip_bit("step-2.safetensors");
  EXPECT_EQ(load(), 1U);
  EXPECT_EQ(files().size(), 5U) << "until there is another";
  state.initialise(4);
  checkpoints.save(at_step(4), state);
  EXPECT_EQ(files(),
            (std::vector<std::string>{"checkpoint.json", "step-1.json", "step-1.safetensors",
                                      "step-4.json", "step-4.safetensors"}));
}

// Killed between step-3.json and checkpoint.json.
TEST_F(CheckpointFallback, IsTheNewestAlsoWhereItsCopyIsMissing) {
  save(1);
  save(2);
  const std::string copy = content("checkpoint.json");
  save(3);
  overwrite("checkpoint.json", copy);
  const ChosenCheckpoint chosen = checkpoints.go_on(key);
  EXPECT_EQ(chosen.manifest.checkpoint.step, 3U);
  EXPECT_TRUE(chosen.passed_over.empty());
}

// Whoever looks while a training may go on, takes a name whose file is gone for one that it
// removes.
TEST_F(CheckpointFallback, PassesOverANameThatStaysUnreadable) {
  save(2);
  std::filesystem::create_symlink("nowhere", folder.file("step-9.json"));
  for (const Meanwhile meanwhile : {Meanwhile::kMayChange, Meanwhile::kIsLocked}) {
    const ChosenCheckpoint chosen = choose_checkpoint(folder.path(), meanwhile);
    EXPECT_EQ(chosen.manifest.checkpoint.step, 2U);
    ASSERT_EQ(chosen.passed_over.size(), 1U);
    EXPECT_EQ(chosen.passed_over[0].find("cannot read " + folder.file("step-9.json")), 0U);
  }
  const std::vector<CheckpointFinding> findings = verify_checkpoints(folder.path());
  ASSERT_EQ(findings.size(), 3U);
  EXPECT_EQ(findings[1].manifest, "step-9.json");
  EXPECT_EQ(findings[1].problem.value_or("").find("cannot read " + folder.file("step-9.json")), 0U);
  EXPECT_FALSE(findings[0].problem || findings[2].problem);
}

// The same when step 2 was damaged, and has been trained again.
TEST_F(CheckpointFallback, PassesOverAnOlderCopyOfItsManifest) {
  save(1);
  save(2);
  const std::string copy = content("checkpoint.json");
  state.initialise(5);
  checkpoints.save(at_step(2), state);
  overwrite("checkpoint.json", copy);
  EXPECT_EQ(choose().path, folder.file("step-2.json"));
}

// checkpoint.json is a copy: that of the checkpoint itself will do.
TEST_F(CheckpointFallback, NeedsOneOfTheTwoManifestsOfACheckpoint) {
  save(1);
  save(2);
  flip_bit("checkpoint.json");
  EXPECT_EQ(choose().manifest.checkpoint.step, 2U);
  EXPECT_EQ(choose().passed_over.size(), 1U);
}

}  // namespace
}  // namespace spillway
