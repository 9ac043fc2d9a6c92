#include "um/dropin/moves_under_way.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <latch>
#include <thread>

namespace spillway::um {
namespace {

class MovesUnderWayTest : public testing::Test {
 protected:
  /// Runs `wait` in a thread and `end` in this one. True when the wait ended after `end` began.
  [[nodiscard]] static bool outlasts(const std::function<void()>& wait,
                                     const std::function<void()>& end) {
    std::latch is_running{1};
    std::atomic<bool> has_begun = false;
    bool was_late = false;
    std::thread waiter{[&] {
      is_running.count_down();
      wait();
      was_late = has_begun;
    }};
    is_running.wait();
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();  // in which a wait may end too early
    has_begun = true;
    end();
    waiter.join();
    return was_late;
  }

  MovesUnderWay moves;
};

TEST_F(MovesUnderWayTest, AreWaitedForInBothDirections) {
  moves.wait();
  for (const Place last : {Place::kNear, Place::kFar}) {
    moves.start(Place::kNear);
    moves.start(Place::kFar);
    moves.end(last == Place::kNear ? Place::kFar : Place::kNear);
    EXPECT_TRUE(outlasts([&] { moves.wait(); }, [&] { moves.end(last); }));
  }
}

TEST_F(MovesUnderWayTest, ThatStartDuringAWaitAreNotWaitedFor) {
  moves.start(Place::kFar);
  EXPECT_TRUE(outlasts([&] { moves.wait(); },
                       [&] {
                         moves.start(Place::kFar);
                         moves.end(Place::kFar);
                       }));
}

TEST_F(MovesUnderWayTest, StartOneByOneWhereThereIsAMost) {
  moves.start_below(2, Place::kNear);
  moves.start_below(2, Place::kNear);
  moves.start_below(2, Place::kFar);
  EXPECT_TRUE(
      outlasts([&] { moves.start_below(2, Place::kNear); }, [&] { moves.end(Place::kNear); }));
  EXPECT_TRUE(
      outlasts([&] { moves.start_below(1, Place::kFar); }, [&] { moves.end(Place::kFar); }));
}

TEST_F(MovesUnderWayTest, MayEndBeforeTheyStart) {
  moves.end(Place::kNear);
  moves.start(Place::kNear);
  moves.wait();
  moves.start_below(1, Place::kNear);
}

}  // namespace
}  // namespace spillway::um
