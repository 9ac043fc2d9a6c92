#include "um/dropin/moves_under_way.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

namespace spillway::um {
namespace {

class MovesUnderWayTest : public testing::Test {
 protected:
  /// Runs `wait` in a thread, and `until` once that had time to begin. True when it ended only
  /// after `until` did.
  [[nodiscard]] static bool waits(const std::function<void()>& wait,
                                  const std::function<void()>& until) {
    std::atomic<bool> has_ended = false;
    std::thread waiter{[&] {
      wait();
      has_ended = true;
    }};
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
    const bool was_early = has_ended;
    until();
    waiter.join();
    return !was_early;
  }

  MovesUnderWay moves;
};

TEST_F(MovesUnderWayTest, AreWaitedForInBothDirections) {
  moves.wait();
  moves.start(Place::kNear);
  moves.start(Place::kFar);
  EXPECT_TRUE(waits([&] { moves.wait(); },
                    [&] {
                      moves.end(Place::kNear);
                      moves.end(Place::kFar);
                    }));
}

TEST_F(MovesUnderWayTest, ThatStartDuringAWaitAreNotWaitedFor) {
  moves.start(Place::kFar);
  EXPECT_TRUE(waits([&] { moves.wait(); },
                    [&] {
                      moves.start(Place::kFar);
                      moves.end(Place::kFar);
                    }));
}

TEST_F(MovesUnderWayTest, LeaveRoomForSoManyInADirection) {
  moves.start(Place::kNear);
  moves.wait_for_room(Place::kNear, 2);
  moves.start(Place::kNear);
  moves.wait_for_room(Place::kFar, 2);
  EXPECT_TRUE(
      waits([&] { moves.wait_for_room(Place::kNear, 2); }, [&] { moves.end(Place::kNear); }));
}

TEST_F(MovesUnderWayTest, MayEndBeforeTheyStart) {
  moves.end(Place::kNear);
  moves.wait_for_room(Place::kNear, 1);
  moves.start(Place::kNear);
  moves.wait_for_room(Place::kNear, 1);
  moves.wait();
}

}  // namespace
}  // namespace spillway::um
