#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "tests/sleeping_threads.h"
#include "tests/um/cuda/recording_api.h"
#include "tests/um/stream_contract.h"
#include "um/cuda/cuda_device.h"
#include "um/cuda/streams/cuda_stream.h"
#include "um/cuda/streams/move_queue.h"
#include "um/memory.h"

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

class CudaLanesTest : public ::testing::Test {
 protected:
  // Makes a, copies it out and back, and uses it.
  void give() {
    kernel("make", a_.bytes(), Access::kWrite);
    lanes_.wait(Lane::kOut, lanes_.mark(Lane::kCompute));
    lanes_.copy(Lane::kOut, a_.bytes(), b_.data());
    lanes_.wait(Lane::kIn, lanes_.mark(Lane::kOut));
    lanes_.copy(Lane::kIn, b_.bytes(), a_.data());
    lanes_.wait(Lane::kCompute, lanes_.mark(Lane::kIn));
    kernel("use", a_.bytes(), Access::kRead);
  }
  void kernel(const std::string& name, Range range, Access access) {
    const Use use{.range = range, .access = access};
    api_.launch(compute_.get(), name, {&use, 1}, [this, name] { done_.push_back(name); });
  }

  RecordingApi api_;
  StreamHandle compute_{api_, "compute"};
  DeviceMemory memory_{api_};
  Block a_{memory_, Bytes{2U << 20U}};
  Block b_{memory_, Bytes{2U << 20U}};
  Log done_;
  CudaLanes lanes_{api_, compute_.get()};
};

TEST_F(CudaLanesTest, BeginAndEndWithTheStream) {
  static_cast<void>(api_.take_log());
  lanes_.run([] {});
  EXPECT_EQ(api_.take_log(),
            (Log{"compute: record", "step in: wait for compute", "step out: wait for compute",
                 "step in: record", "compute: wait for step in", "step out: record",
                 "compute: wait for step out"}));
}

TEST_F(CudaLanesTest, OrderWhatTheyAreGiven) {
  lanes_.run([this] { give(); });
  EXPECT_EQ(done_, (Log{"make", "use"}));
}

TEST_F(CudaLanesTest, TellOfAMissingWait) {
  std::vector<std::string> conflicts;
  api_.tell_conflicts([&](const std::string& conflict) { conflicts.push_back(conflict); });
  lanes_.keep([this] {
    kernel("make", a_.bytes(), Access::kWrite);
    lanes_.copy(Lane::kOut, a_.bytes(), b_.data());
  });
  EXPECT_EQ(conflicts, Log{});
  lanes_.run_kept();
  EXPECT_EQ(conflicts, (Log{"no order between \"compute: make\" and, later, \"step out: copy "
                            "device 0+1 to device 0\" on device 0+1"}));
}

TEST_F(CudaLanesTest, RepeatWhatTheyHaveKeptWithOneCall) {
  lanes_.keep([this] { give(); });
  EXPECT_EQ(done_, Log{});
  EXPECT_TRUE(lanes_.has_kept());
  static_cast<void>(api_.take_log());
  const std::size_t before = api_.calls();
  lanes_.run_kept();
  lanes_.run_kept();
  EXPECT_EQ(api_.calls() - before, 2U);
  EXPECT_EQ(api_.take_log(), (Log{"compute: launch graph", "compute: launch graph"}));
  EXPECT_EQ(done_, (Log{"make", "use", "make", "use"}));
}

// Work after a launch is ordered after all work of the launch.
TEST_F(CudaLanesTest, AreJoinedByTheStream) {
  lanes_.keep([this] { lanes_.copy(Lane::kOut, a_.bytes(), b_.data()); });
  lanes_.run_kept();
  kernel("overwrite", a_.bytes(), Access::kWrite);
  kernel("overwrite", b_.bytes(), Access::kWrite);
  lanes_.run_kept();
  api_.synchronize(compute_.get());
}

TEST_F(CudaLanesTest, KeepNothingWhereGivingFails) {
  static_cast<void>(api_.take_log());
  EXPECT_THROW(lanes_.keep([this] {
    give();
    throw Error{"no kernel"};
  }),
               Error);
  EXPECT_EQ(api_.take_log().back(), "compute: abandon capture");
  EXPECT_FALSE(lanes_.has_kept());
  EXPECT_FALSE(api_.is_captured(compute_.get()));
  lanes_.run([this] { give(); });
  EXPECT_EQ(done_, (Log{"make", "use"}));
}

TEST_F(CudaLanesTest, HaveEndedWhatWasGivenWhenGivingHasFailed) {
  EXPECT_THROW(lanes_.run([this] {
    give();
    throw Error{"no kernel"};
  }),
               Error);
  api_.touch(a_.bytes(), Access::kReadWrite);
  api_.touch(b_.bytes(), Access::kReadWrite);
}

TEST_F(CudaLanesTest, TellWhenSomethingWas) {
  api_.hold();
  Lanes::Mark mark = 0;
  lanes_.run([&] {
    kernel("make", a_.bytes(), Access::kWrite);
    mark = lanes_.mark(Lane::kCompute);
  });
  api_.finish("compute", Nanoseconds{1000});
  api_.finish("compute", Nanoseconds{1250});
  api_.let_go();
  EXPECT_EQ(lanes_.time(mark), Nanoseconds{250});
}

class MoveQueueTest : public ::testing::Test {
 protected:
  // Enqueues a move that records its number and its stream.
  void enqueue(MoveQueue& queue, int number) {
    queue.enqueue(
        [this, number](cudaStream_t stream) {
          api.note("move " + std::to_string(number) + " on " +
                   std::to_string(reinterpret_cast<std::uintptr_t>(stream)));
        },
        [this, number](const std::exception_ptr& failure) {
          api.note("end " + std::to_string(number) + (failure ? " failed" : ""));
        });
  }
  RecordingApi api;
};

// Two streams, 1 and 2, and two moves in flight: the third move meets an idle stream.
TEST_F(MoveQueueTest, GivesEachMoveAnIdleStreamAndTellsTheirEndsInOrder) {
  MoveQueue queue{api, {.name = "in", .streams = 2, .under_way = 2}};
  api.hold();
  for (int i = 0; i < 3; ++i) enqueue(queue, i);
  api.wait_until_noted("in 2: record");
  api.finish("in 2");  // the second move ends first, but is reported after the first
  api.finish("in");
  api.wait_until_noted("in: record", 2);
  api.finish("in");
  api.wait_until_noted("end 2");
  const Log log = api.take_log();
  EXPECT_EQ(Log(log.begin(), log.begin() + 4),
            (Log{"move 0 on 1", "in: record", "move 1 on 2", "in 2: record"}));
  const auto at = [&](const std::string& line) { return std::ranges::find(log, line); };
  EXPECT_LT(at("end 0"), at("move 2 on 1"));
  EXPECT_LT(at("end 0"), at("end 1"));
  EXPECT_LT(at("end 1"), at("end 2"));
}

TEST_F(MoveQueueTest, AMoveWhoseCallFailsHasFailedAndTheNextIsMade) {
  MoveQueue queue{api, {.name = "in"}};
  api.fail("move 0", cudaErrorInvalidValue);
  enqueue(queue, 0);
  enqueue(queue, 1);
  api.wait_until_noted("end 1");
  EXPECT_EQ(api.take_log(),
            (Log{"move 0 on 1", "end 0 failed", "move 1 on 1", "in: record", "end 1"}));
}

TEST_F(MoveQueueTest, LetsStreamsWaitForAMoveOnceItIsIssuedUntilItHasEnded) {
  ComputeStreams streams{api};
  streams.add(api.make_stream("compute"));
  MoveQueue queue{api, {.name = "in"}};
  api.hold();
  enqueue(queue, 0);
  enqueue(queue, 1);
  std::thread waiter{[&] { queue.make_wait(streams, 1); }};  // move 1 is issued after 0 ended
  api.finish("in");
  waiter.join();
  api.finish("in");
  api.wait_until_noted("end 1");
  EXPECT_EQ(api.take_log(), (Log{"move 0 on 2", "in: record", "end 0", "move 1 on 2", "in: record",
                                 "compute: wait for in", "end 1"}));
  queue.make_wait(streams, 0);
  EXPECT_EQ(api.take_log(), Log{});
}

TEST_F(MoveQueueTest, ItsEndWaitsForAllMoves) {
  {
    MoveQueue queue{api, {.name = "in", .streams = 1, .under_way = 4}};
    for (int i = 0; i < 9; ++i) enqueue(queue, i);
  }
  const Log log = api.take_log();
  EXPECT_EQ(log.back(), "end 8");
  EXPECT_EQ(api.live_objects(), 0U);
}

}  // namespace
}  // namespace spillway::um
