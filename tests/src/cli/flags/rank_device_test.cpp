#include "src/cli/flags/rank_device.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "src/ranks/thread_communicator.h"
#include "tests/refusal.h"

namespace spillway::cli {
namespace {

TEST(DeviceOfARank, IsAnotherGpuForEachOnANode) {
  EXPECT_EQ(gpu_of_rank(4, 0, 2), 0U);
  EXPECT_EQ(gpu_of_rank(4, 1, 2), 1U);
  EXPECT_EQ(gpu_of_rank(2, 1, 2), 1U);
}

// As Slurm's --gpus-per-task and CUDA_VISIBLE_DEVICES do.
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
