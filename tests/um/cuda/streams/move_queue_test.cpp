#include "um/cuda/streams/move_queue.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/um/cuda/recording_api.h"

namespace spillway::um {
namespace {

using Log = std::vector<std::string>;

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
