#include "src/cuda/ranks/nccl_communicator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <latch>
#include <string>
#include <vector>

#include "src/cuda/ranks/device_communicator.h"
#include "src/ranks/tree_reduction.h"
#include "tests/refusal.h"
#include "tests/src/cuda/ranks/nccl_ranks.h"
#include "tests/src/ranks/communicator_contract.h"
#include "tests/src/ranks/micro_batch_numbers.h"

namespace spillway::cuda {
namespace {

using namespace std::chrono_literals;
using namespace spillway::testing;

class NcclRanks : public ::testing::Test {
 protected:
  void SetUp() override { stand_in().reset(); }
  void TearDown() override { stand_in().reset(); }
};

// A device with memory in RAM: each call waits, as the contract's callers expect.
class Waiting final : public Communicator {
 public:
  explicit Waiting(Communicator& device)
      : Communicator{device.nodes(), device.rank()}, device_{device} {}
  void exchange(SentPieces sends, ReceivedPieces receives) override {
    device_.exchange(sends, receives);
    device_.finish();
  }
  void sum(std::span<float> numbers) override {
    device_.sum(numbers);
    device_.finish();
  }
  [[nodiscard]] const NumberKernels& kernels() const override { return device_.kernels(); }
  void finish() override { device_.finish(); }
  [[nodiscard]] std::string library() const override { return device_.library(); }
  [[noreturn]] void abort(std::string_view sentence) override {
    device_.abort(sentence);
    throw std::logic_error{"an abort that returns"};
  }

 private:
  Communicator& device_;
};

TEST_F(NcclRanks, KeepWhatACommunicatorPromises) {
  for (std::size_t ranks = 2; ranks <= 5; ++ranks) {
    ThreadRanks group{ranks};
    for (const Promise& promise : communicator_contract()) {
      const auto errors = on_nccl_ranks(group, [&](const NcclRank& rank) {
        Waiting device{rank.device};
        promise.check(device);
      });
      EXPECT_EQ(errors, no_errors(group)) << promise.name << " on " << ranks;
    }
  }
  EXPECT_EQ(stand_in().aborted, 0);
  EXPECT_EQ(stand_in().destroyed,
            (2 + 3 + 4 + 5) * static_cast<int>(communicator_contract().size()));
}

// A single rank does not need NCCL.
TEST_F(NcclRanks, OfOneRankAreItsDeviceAlone) {
  ThreadRanks group{1};
  const auto errors = on_ranks(group, [](Communicator& process) {
    um::RecordingApi gpu;
    DeviceCommunicator device{process, device_in_ram(gpu), {}};
    EXPECT_EQ(device.library(), "none");
    for (const Promise& promise : communicator_contract()) {
      Waiting waiting{device};
      promise.check(waiting);
    }
  });
  EXPECT_EQ(errors, no_errors(group));
}

// Work that calls on rank `rank` gave their stream, one line each: "send 8 to 1", "receive 8 from
// 1".
struct GivenWork {
  std::mutex mutex;
  std::vector<std::string> lines;

  void listen(int rank) {
    stand_in().give = [this, rank](const NcclWork& work) {
      work.act();
      if (work.rank != rank) return;
      std::string line;
      for (const NcclPiece& piece : work.pieces) {
        const std::string size = std::to_string(piece.bytes.size());
        line += line.empty() ? "" : ", ";
        line += piece.kind == NcclPiece::Kind::kSum    ? "sum " + size
                : piece.kind == NcclPiece::Kind::kSend ? "send " + size + " to "
                                                       : "receive " + size + " from ";
        if (piece.kind != NcclPiece::Kind::kSum) line += std::to_string(piece.peer);
      }
      const std::lock_guard lock{mutex};
      lines.push_back(line);
    };
  }
};

// 40 numbers on 2 ranks, one per node: slices of 16 and 24.
TEST_F(NcclRanks, SendSlicesInOneGroup) {
  GivenWork given;
  given.listen(0);
  ThreadRanks group{2};
  const auto errors = on_nccl_ranks(group, [&](const NcclRank& rank) {
    const TreeReduction reduction{rank.device, 2};
    std::vector<float> numbers = micro_batch_numbers(rank.device.rank(), 40);
    std::vector<std::byte> scratch(reduction.scratch_size(40).count());
    const std::array<std::span<const float>, 1> nodes{numbers};
    reduction.all_reduce(nodes, numbers, scratch);
    rank.device.finish();
    EXPECT_TRUE(same_bits(numbers, tree_sum(2, 40)));
    reduction.fast_all_reduce(nodes, numbers);
    rank.device.finish();
  });
  EXPECT_EQ(errors, no_errors(group));
  EXPECT_EQ(given.lines, (std::vector<std::string>{"send 96 to 1, receive 64 from 1",
                                                   "send 64 to 1, receive 96 from 1", "sum 160"}));
}

void sum_three(Communicator& device) {
  std::array<float, 3> numbers{};
  device.sum(numbers);
  device.finish();
}

void broadcast_three(Communicator& device) {
  std::array<std::byte, 3> bytes{};
  device.broadcast(bytes, 1);
  device.finish();
}

// Rank 1 joins and then stays silent.
TEST_F(NcclRanks, NameTheOneThatIsSilent) {
  for (const auto call : {sum_three, broadcast_three}) {
    ThreadRanks group{{"a", "b", "b"}, {.time_limit = 100ms}};
    const auto errors = on_nccl_ranks(group,
                                      [&](const NcclRank& rank) {
                                        if (rank.process.rank() == 1) throw um::Error{"gone"};
                                        call(rank.device);
                                      },
                                      {.time_limit = 100ms});
    for (const std::size_t rank : {0, 2}) {
      EXPECT_EQ(errors[rank],
                "nothing has come from rank 1 on b for 0.1 s: it hangs, has ended, or cannot be "
                "reached");
    }
  }
  EXPECT_EQ(stand_in().destroyed, 0);
  EXPECT_EQ(stand_in().aborted, 6);
}

// Rank 1 does not even join.
TEST_F(NcclRanks, NameTheOneThatDoesNotJoin) {
  ThreadRanks group{2, {.time_limit = 100ms}};
  const auto errors = on_ranks(group, [&](Communicator& process) {
    if (process.rank() == 1) return;
    um::RecordingApi gpu;
    const NcclCommunicator device{
        process, device_in_ram(gpu), {.time_limit = 100ms}, stand_in_functions()};
  });
  EXPECT_NE(errors[0].find("nothing has come from rank 1"), std::string::npos) << errors[0];
}

TEST_F(NcclRanks, SayWhenDevicesDoNotReachEachOther) {
  ThreadRanks group{2};
  const auto errors = on_nccl_ranks(group,
                                    [](const NcclRank& rank) {
                                      rank.gpu.hold();  // no GPU completes its work
                                      sum_three(rank.device);
                                    },
                                    {.time_limit = 50ms});
  for (const std::string& error : errors) {
    EXPECT_EQ(error,
              "NCCL has not ended an exchange for 0.05 s, although all ranks answer: their GPUs do "
              "not reach each other; NCCL_DEBUG=INFO has it say more");
  }
}

TEST_F(NcclRanks, SayWhatNcclSaysWhenItFails) {
  ThreadRanks group{2};
  std::latch looked{1};
  const auto errors = on_nccl_ranks(group, [&](const NcclRank& rank) {
    sum_three(rank.device);
    wait_for_all(rank.process);
    if (rank.process.rank() == 1) {
      looked.wait();
      throw um::Error{"gone"};
    }
    {
      const std::lock_guard lock{stand_in().mutex};
      stand_in().failures[0] = ncclRemoteError;
      stand_in().last_error = "socket closed by node-b";
    }
    EXPECT_THROW(sum_three(rank.device), um::Error);
    EXPECT_EQ(stand_in().aborted, 1);  // at the failure, not by the destructor
    looked.count_down();
    sum_three(rank.device);  // throws the same error again
  });
  EXPECT_EQ(errors[0],
            "NCCL: remote process exited or there was a network error (socket closed by node-b)");
}

TEST_F(NcclRanks, AgreeAboutTheVersion) {
  ThreadRanks group{2};
  const auto errors = on_ranks(group, [](Communicator& process) {
    um::RecordingApi gpu;
    NcclFunctions functions = stand_in_functions();
    if (process.rank() == 1) functions.version = "2.20.5";
    const NcclCommunicator device{process, device_in_ram(gpu), {}, functions};
  });
  for (const std::string& error : errors) {
    EXPECT_EQ(error.find("the ranks differ in version of NCCL"), 0U) << error;
  }
}

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
