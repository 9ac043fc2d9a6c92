#include "um/cuda/streams/cuda_stream.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "tests/sleeping_threads.h"
#include "tests/um/cuda/recording_api.h"
#include "tests/um/stream_contract.h"

namespace spillway::um {
namespace {

using Log = std::vector<std::string>;
using namespace std::chrono_literals;

struct Driver {
  RecordingApi api;
  ComputeStreams compute{api};
};

StreamMaker recorded_stream_maker() {
  const auto driver = std::make_shared<Driver>();
  return {.kind = "Cuda", .make = [driver](const std::string& name) {
            return std::make_unique<CudaStream>(driver->api, driver->compute, name);
          }};
}

INSTANTIATE_TEST_SUITE_P(Recorded, StreamContract, ::testing::Values(recorded_stream_maker()),
                         kind_of);

class CudaStreamTest : public ::testing::Test, protected Driver {
 protected:
  ~CudaStreamTest() override { api.let_go(); }
  CudaStream stream{api, compute, "compute"};
};

TEST_F(CudaStreamTest, TellsThatWorkHasEndedOnlyWhenTheGpuHasDoneIt) {
  static_cast<void>(api.take_log());
  api.hold();
  std::atomic<int> told = 0;
  ThreadEvent launched;
  stream.enqueue([&] {
    api.note("launch");
    stream.notify([&](auto) { ++told; });
    launched.fire();
  });
  const auto event = stream.record();
  launched.wait();
  EXPECT_EQ(told, 0);
  EXPECT_FALSE(event->has_fired());
  api.finish("compute");
  while (told == 0) std::this_thread::yield();
  EXPECT_FALSE(event->has_fired());
  api.finish("compute");
  event->wait();
  EXPECT_EQ(api.take_log(), (Log{"launch", "compute: record", "compute: record"}));
}

TEST_F(CudaStreamTest, LetsTheGpuWaitForAnEventOfTheGpu) {
  CudaStream other{api, compute, "other"};
  api.hold();
  const auto event = other.record();
  static_cast<void>(api.take_log());
  ThreadEvent went_on;
  stream.wait(event);
  stream.enqueue([&] { went_on.fire(); });
  went_on.wait();  // the host did not wait
  EXPECT_FALSE(event->has_fired());
  const Log log = api.take_log();
  EXPECT_EQ(log.back(), "compute: wait for other");
  api.let_go();
}

TEST_F(CudaStreamTest, WaitsItselfForAnEventOfAThread) {
  const auto event = std::make_shared<ThreadEvent>();
  std::atomic<bool> went_on = false;
  stream.wait(event);
  stream.enqueue([&] { went_on = true; });
  while (!test::all_others_sleep()) std::this_thread::yield();
  EXPECT_FALSE(went_on);
  event->fire();
  stream.synchronize();
  EXPECT_TRUE(went_on);
}

TEST_F(CudaStreamTest, GivesTheMomentsOfTheGpusClock) {
  using Clock = std::chrono::steady_clock;
  api.hold();
  std::vector<Clock::time_point> moments;
  stream.enqueue([&] {
    for (int i = 0; i < 2; ++i) {
      stream.notify([&](Clock::time_point moment) { moments.push_back(moment); });
    }
  });
  api.finish("compute", 5ms);
  api.finish("compute", 7ms);
  api.let_go();
  stream.synchronize();
  ASSERT_EQ(moments.size(), 2U);
  EXPECT_EQ(moments[1] - moments[0], 2ms);
}

TEST_F(CudaStreamTest, UsesAnEventAgainOnceItsNoticeWasGiven) {
  const std::size_t before = api.live_objects();
  for (int i = 0; i < 10; ++i) {
    stream.notify([](auto) {});
    stream.synchronize();
  }
  EXPECT_EQ(api.live_objects(), before + 1);
}

TEST_F(CudaStreamTest, ReadsAfterTheWorkBeforeAndWaits) {
  std::array<std::byte, 4> near{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
  std::array<std::byte, 4> read{};
  stream.enqueue([&] { stream.read(near, read); });
  stream.synchronize();
  EXPECT_EQ(read, near);
}

TEST_F(CudaStreamTest, AFailedLaunchComesOutOfSynchronize) {
  api.fail("compute: record", cudaErrorLaunchFailure);
  bool is_told = false;
  stream.notify([&](auto) { is_told = true; });
  EXPECT_THROW(stream.synchronize(), CudaError);
  EXPECT_TRUE(is_told);
  api.fail("", cudaSuccess);
}

TEST_F(CudaStreamTest, EndsTheLabelBeforeTheNext) {
  static_cast<void>(api.take_log());
  stream.enqueue([&] {
    stream.label("conv1");
    stream.label("conv2");
    stream.label({});
    stream.label({});
  });
  stream.synchronize();
  const Log log = api.take_log();
  EXPECT_EQ(Log(log.begin(), log.begin() + 4), (Log{"begin conv1", "end", "begin conv2", "end"}));
}

// A stream with kernels that write to one page of the device, which the host then uses. The test
// fails if the host has not waited.
class WrittenPage : public CudaStreamTest {
 protected:
  ~WrittenPage() override { api.free_device(page.data()); }
  void write(CudaStream& by) {
    by.enqueue([&] {
      const Use use{.range = page, .access = Access::kWrite};
      api.launch(by.native(), "write", {&use, 1});
    });
  }
  void use() { api.touch(page, Access::kWrite); }

  Range page{api.allocate_device(2_MiB), (2_MiB).count()};
};

TEST_F(WrittenPage, IsTheHostsAfterSynchronize) {
  write(stream);
  stream.synchronize();
  use();
}

TEST_F(WrittenPage, IsTheHostsWhenTheStreamHasEnded) {
  {
    CudaStream other{api, compute, "other"};
    write(other);
  }
  use();
}

TEST_F(WrittenPage, IsTheHostsAfterAnEvent) {
  write(stream);
  stream.record()->wait();
  use();
}

TEST_F(WrittenPage, IsTheHostsAfterAnEventThatCouldNotBeRecorded) {
  api.fail("compute: record", cudaErrorLaunchFailure);
  write(stream);
  stream.record()->wait();
  use();
  api.fail("", cudaSuccess);
  EXPECT_THROW(stream.synchronize(), CudaError);
}

TEST_F(WrittenPage, IsTheHostsAfterANotice) {
  write(stream);
  ThreadEvent told;
  stream.notify([&](auto) { told.fire(); });
  told.wait();
  use();
}

TEST_F(WrittenPage, IsTheHostsWhenItHasBeenRead) {
  write(stream);
  std::array<std::byte, 4> into{};
  stream.enqueue([&] {
    stream.read(page.first(4), into);
    use();
  });
  stream.synchronize();
}

TEST_F(WrittenPage, IsAnotherStreamsAfterAnEvent) {
  CudaStream other{api, compute, "other"};
  write(stream);
  other.wait(stream.record());
  write(other);
  other.synchronize();
}

// The notice ends only when all other threads wait for it.
TEST_F(CudaStreamTest, SynchronizesWithTheNotices) {
  std::atomic<bool> is_told = false;
  stream.notify([&](auto) {
    while (!test::all_others_sleep()) std::this_thread::yield();
    is_told = true;
  });
  stream.synchronize();
  EXPECT_TRUE(is_told);
}

TEST(CudaStream, LeavesNothingBehind) {
  RecordingApi api;
  {
    ComputeStreams compute{api};
    CudaStream stream{api, compute, "compute"};
    stream.notify([](auto) {});
    static_cast<void>(stream.record());
  }
  EXPECT_EQ(api.live_objects(), 0U);
}

}  // namespace
}  // namespace spillway::um
