// Which checkpoint a training goes on from where the newest, or a copy of its manifest, is damaged.

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "src/train/checkpoint_check.h"
#include "src/train/checkpoint_choice.h"
#include "tests/src/train/checkpoint_fixture.h"

namespace spillway {
namespace {

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
