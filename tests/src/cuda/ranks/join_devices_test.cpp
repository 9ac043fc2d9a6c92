#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "src/cuda/ranks/device_communicator.h"
#include "src/cuda/ranks/nccl_communicator.h"
#include "tests/refusal.h"
#include "tests/src/cuda/ranks/nccl_ranks.h"

namespace spillway::cuda {
namespace {

using spillway::testing::stand_in;

std::string load_refusal(const std::string& library) {
  return test::refusal([&] { return load_nccl(library); });
}

TEST(NcclFunctions, SayWhatToDoWhereThereIsNone) {
  const std::string sentence = load_refusal("libnccl-that-is-nowhere.so.2");
  EXPECT_NE(sentence.find("NCCL, which cannot be loaded (libnccl-that-is-nowhere.so.2"),
            std::string::npos)
      << sentence;
  EXPECT_NE(sentence.find("use --device host"), std::string::npos) << sentence;
}

TEST(NcclFunctions, RefuseALibraryThatIsNone) {
  const std::string sentence = load_refusal("libc.so.6");
  EXPECT_NE(sentence.find("has no ncclGetVersion"), std::string::npos) << sentence;
}

TEST(NcclFunctions, RefuseAVersionThatIsTooOld) {
  stand_in().reset();
  stand_in().version = NCCL_VERSION(2, 19, 4);
  const std::string sentence = load_refusal(SPILLWAY_STAND_IN_NCCL);
  EXPECT_NE(sentence.find("NCCL 2.19.4 is too old"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("2.20 or newer"), std::string::npos) << sentence;
  stand_in().reset();
}

// NVIDIA's NCCL can be queried without a GPU.
TEST(NcclFunctions, AreAllInTheInstalledLibrary) {
  void* const library = dlopen(kNcclLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) GTEST_SKIP() << "no NCCL is installed";
  EXPECT_EQ(load_nccl(kNcclLibrary).version.substr(0, 2), "2.");
}

// Joins exactly as the plug-in does, except for kernels. The ranks use slices (MIG) of one GPU,
// which share its PCI address.
TEST(DevicesOfRanks, MeetWhenTheyJoin) {
  stand_in().reset();
  ThreadRanks group{3};
  const auto errors = spillway::testing::on_ranks(group, [](Communicator& process) {
    um::CudaFacts facts = um::RecordingApi::h200();
    facts.uuid = "GPU-" + std::to_string(process.rank());
    um::RecordingApi gpu{facts};
    const auto joined = join_devices(gpu, process, {}, SPILLWAY_STAND_IN_NCCL);
    EXPECT_EQ(joined->library(), "nccl");
    EXPECT_EQ(std::ranges::count(gpu.take_log(), "exchange: copy device 0+4 B to device 4 B"),
              process.rank() == 0 ? 1 : 0);  // the first rank's copy to itself
  });
  EXPECT_EQ(errors, spillway::testing::no_errors(group));
  EXPECT_EQ(stand_in().destroyed, 3);
}

TEST(DevicesOfRanks, AreRefusedWhereNcclIsMissing) {
  ThreadRanks group{2, {.time_limit = std::chrono::milliseconds{200}}};
  const auto errors = spillway::testing::on_ranks(group, [](Communicator& process) {
    um::CudaFacts facts = um::RecordingApi::h200();
    facts.pci_bus = std::to_string(process.rank());
    um::RecordingApi gpu{facts};
    static_cast<void>(join_devices(gpu, process, {}, "libnccl-that-is-nowhere.so.2"));
  });
  for (const std::string& error : errors) {
    EXPECT_EQ(error.find("ranks on several GPUs speak over NCCL, which cannot be loaded"), 0U)
        << error;
  }
}

// Both ranks would train on the same GPU.
TEST(DevicesOfRanks, AreRefusedWhereTheyAreOne) {
  ThreadRanks group{2};
  const auto errors = spillway::testing::on_ranks(group, [](Communicator& process) {
    um::RecordingApi gpu;
    static_cast<void>(join_devices(gpu, process, {}, SPILLWAY_STAND_IN_NCCL));
  });
  for (const std::string& error : errors) {
    EXPECT_NE(error.find("have one GPU, 0000:1B:00.0, together"), std::string::npos) << error;
  }
}

TEST(DevicesOfRanks, AreOneEach) {
  const std::vector<std::string> nodes{"a", "a", "b"};
  EXPECT_NO_THROW(expect_gpu_each(nodes, std::vector<std::string>{"01", "02", "01"}));
  const std::string sentence = test::refusal([&] {
    expect_gpu_each(nodes, std::vector<std::string>{"01", "01", "01"});
    return true;
  });
  EXPECT_NE(sentence.find("ranks 0 and 1 on a have one GPU, 01, together"), std::string::npos)
      << sentence;
}

}  // namespace
}  // namespace spillway::cuda
