#include "src/checkpoint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "tests/src/data/refusal.h"
#include "tests/src/data/temporary_folder.h"

namespace spillway {
namespace {

using test::refusal;

Checkpoint at_step(std::uint64_t step) {
  return {
      .key = {.network = "lenet 1x28x28, 10 classes", .data = "synthetic", .batch = 4, .seed = 7},
      .step = step,
      .learning_rate = 0.05F,
      .tensors = {{.name = "conv", .shape = {2}, .values = {1.5F, static_cast<float>(step)}},
                  {.name = "fc", .shape = {1}, .values = {-3}}}};
}

class CheckpointFolderTest : public testing::Test {
 protected:
  [[nodiscard]] std::string refused(const CheckpointKey& wanted) const {
    return refusal([&] { return checkpoints.load(wanted); });
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
  CheckpointFolder checkpoints{folder.path()};
  CheckpointKey key = at_step(0).key;
};

TEST_F(CheckpointFolderTest, GivesBackWhatWasSaved) {
  EXPECT_FALSE(checkpoints.has_checkpoint());
  checkpoints.save(at_step(12));
  ASSERT_TRUE(checkpoints.has_checkpoint());
  const Checkpoint loaded = checkpoints.load(key);
  EXPECT_EQ(loaded.step, 12U);
  EXPECT_EQ(loaded.learning_rate, 0.05F);
  ASSERT_EQ(loaded.tensors.size(), 2U);
  EXPECT_EQ(loaded.tensors[0].name, "conv");
  EXPECT_EQ(loaded.tensors[0].values, (std::vector<float>{1.5F, 12}));
}

TEST_F(CheckpointFolderTest, KeepsTheNewestOnly) {
  checkpoints.save(at_step(1));
  checkpoints.save(at_step(2));
  EXPECT_EQ(checkpoints.load(key).step, 2U);
  EXPECT_EQ(files(), (std::vector<std::string>{"checkpoint.json", "step-2.safetensors"}));
}

TEST_F(CheckpointFolderTest, HoldsTheOldOneWhenKilledBetweenTensorsAndDescription) {
  checkpoints.save(at_step(1));
  write_safetensors(folder.path() / "step-2.safetensors", at_step(2).tensors);
  overwrite("checkpoint.json.partial", "{\"format\": \"spill");
  EXPECT_EQ(checkpoints.load(key).step, 1U);
  EXPECT_EQ(checkpoints.load(key).tensors[0].values[1], 1.0F);
  checkpoints.save(at_step(3));  // and goes on from there
  EXPECT_EQ(checkpoints.load(key).step, 3U);
  EXPECT_EQ(files(), (std::vector<std::string>{"checkpoint.json", "step-3.safetensors"}));
}

TEST_F(CheckpointFolderTest, RefusesAnotherTrainingAndSaysInWhatItDiffers) {
  checkpoints.save(at_step(1));
  CheckpointKey other = key;
  other.batch = 8;
  const std::string where = folder.file("checkpoint.json") + ": ";
  EXPECT_EQ(refused(other), where +
                                "batch is 4, but this training's is 8; give the same flags, or "
                                "another --checkpoint folder");
  other = key;
  other.network = "vgg16";
  EXPECT_EQ(refused(other).find(where + "network is 'lenet 1x28x28, 10 classes', but"), 0U);
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
  checkpoints.save(at_step(1));
  overwrite("checkpoint.json", "{\"format\": \"spillway-checkpoint\", ");
  EXPECT_NE(refused(key).find("checkpoint.json: not JSON, at byte"), std::string::npos);
  overwrite("checkpoint.json", "{\"format\": \"spillway-checkpoint\", \"version\": 1}");
  EXPECT_NE(refused(key).find("checkpoint.json: network is missing"), std::string::npos);
}

TEST_F(CheckpointFolderTest, RefusesMissingTensorsAndTensorsElsewhere) {
  checkpoints.save(at_step(1));
  std::filesystem::remove(folder.path() / "step-1.safetensors");
  EXPECT_NE(refused(key).find("step-1.safetensors"), std::string::npos);
  std::ifstream file{folder.file("checkpoint.json")};
  std::string text{std::istreambuf_iterator<char>{file}, {}};
  text.replace(text.find("step-1.safetensors"), 4, "../step");
  overwrite("checkpoint.json", text);
  EXPECT_NE(refused(key).find("tensors is no file name"), std::string::npos);
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
