#include "src/cli/flags/flag_values.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "src/cli/flags/device_flags.h"
#include "src/ranks/thread_communicator.h"
#include "tests/refusal.h"

namespace spillway::cli {
namespace {

const std::vector<std::string> kNames{"lenet", "resnet18", "resnet50", "inception-v3", "vdnn+"};

TEST(NearestName, IgnoresCaseAndPunctuation) {
  EXPECT_EQ(um::nearest_name("ResNet-50", kNames), "resnet50");
  EXPECT_EQ(um::nearest_name("Inception_V3", kNames), "inception-v3");
  EXPECT_EQ(um::nearest_name("vdnn", kNames), "vdnn+");
}

TEST(NearestName, ForgivesALetterInFour) {
  EXPECT_EQ(um::nearest_name("lnet", kNames), "lenet");   // one is missing
  EXPECT_EQ(um::nearest_name("lneet", kNames), "lenet");  // two are exchanged
  EXPECT_EQ(um::nearest_name("resnut5", kNames), std::nullopt);
  EXPECT_EQ(um::nearest_name("resnet5", kNames), "resnet50");
  EXPECT_EQ(um::nearest_name("incaption-v4", kNames), "inception-v3");
}

TEST(NearestName, IsNothingWhereNoNameIsClose) {
  for (const std::string wrong : {"", "--", "perceptron", "le"}) {
    EXPECT_EQ(um::nearest_name(wrong, kNames), std::nullopt) << wrong;
  }
  EXPECT_EQ(um::nearest_name(std::string(100'000, 'x'), kNames), std::nullopt);
  EXPECT_EQ(um::nearest_name("lenet", {}), std::nullopt);
}

TEST(NearestName, IsAskedForInOneSentence) {
  EXPECT_EQ(suggest_name("network", "Lenet", kNames, "there are many"),
            "no network 'Lenet'; did you mean 'lenet'?");
  EXPECT_EQ(suggest_name("network", "magic", kNames, "there are many"), "there are many");
}

TEST(DeviceOfARank, IsAnotherGpuForEachOnANode) {
  EXPECT_EQ(gpu_of_rank(4, 0, 2), 0U);
  EXPECT_EQ(gpu_of_rank(4, 1, 2), 1U);
  EXPECT_EQ(gpu_of_rank(2, 1, 2), 1U);
}

// Slurm's --gpus-per-task and CUDA_VISIBLE_DEVICES show a rank one GPU.
TEST(DeviceOfARank, IsTheOneThatItsLauncherShows) {
  EXPECT_EQ(gpu_of_rank(1, 0, 1), 0U);
  EXPECT_EQ(gpu_of_rank(1, 3, 4), 0U);
}

TEST(DeviceOfARank, IsRefusedWhereThereAreTooFew) {
  EXPECT_EQ(test::refusal([] { return gpu_of_rank(2, 0, 3); }),
            "this machine has 2 GPUs for 3 ranks, and each needs one of its own; start fewer "
            "ranks, or use --device host");
}

TEST(DeviceOfARank, IsAsGivenWhereItIsAloneOnItsNode) {
  ThreadRanks group{{"a", "b"}};
  const std::unique_ptr<Communicator> rank = group.end(1);
  EXPECT_EQ(device_of_rank("cuda:1", *rank), "cuda:1");
  EXPECT_EQ(device_of_rank("host", *rank), "host");
}

TEST(DeviceOfARank, IsNotOneThatAnotherHas) {
  ThreadRanks group{{"a", "a"}};
  const std::unique_ptr<Communicator> rank = group.end(1);
  EXPECT_EQ(test::refusal([&] { return device_of_rank("cuda:1", *rank); }),
            "--device cuda:1 is one GPU, and 2 ranks are on this machine; give --device cuda, for "
            "a GPU each");
  EXPECT_EQ(device_of_rank("host", *rank), "host");
}

TEST(DeviceOfARank, IsJoinedWithOthersWhereItIsAGpu) {
  ThreadRanks group{1};
  const std::unique_ptr<Communicator> rank = group.end(0);
  EXPECT_FALSE(joining_of("host", *rank, {}));
  EXPECT_TRUE(joining_of("cuda:0", *rank, {}));
}

}  // namespace
}  // namespace spillway::cli
