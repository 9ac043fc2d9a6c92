#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <latch>
#include <thread>

#include "um/dropin/allocations.h"

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
  for (const MemoryTier last : {MemoryTier::kNear, MemoryTier::kFar}) {
    moves.start(MemoryTier::kNear);
    moves.start(MemoryTier::kFar);
    moves.end(last == MemoryTier::kNear ? MemoryTier::kFar : MemoryTier::kNear);
    EXPECT_TRUE(outlasts([&] { moves.wait(); }, [&] { moves.end(last); }));
  }
}

TEST_F(MovesUnderWayTest, ThatStartDuringAWaitAreNotWaitedFor) {
  moves.start(MemoryTier::kFar);
  EXPECT_TRUE(outlasts([&] { moves.wait(); },
                       [&] {
                         moves.start(MemoryTier::kFar);
                         moves.end(MemoryTier::kFar);
                       }));
}

TEST_F(MovesUnderWayTest, StartOneByOneWhereThereIsAMost) {
  moves.start_below(2, MemoryTier::kNear);
  moves.start_below(2, MemoryTier::kNear);
  moves.start_below(2, MemoryTier::kFar);
  EXPECT_TRUE(outlasts([&] { moves.start_below(2, MemoryTier::kNear); },
                       [&] { moves.end(MemoryTier::kNear); }));
  EXPECT_TRUE(outlasts([&] { moves.start_below(1, MemoryTier::kFar); },
                       [&] { moves.end(MemoryTier::kFar); }));
}

TEST_F(MovesUnderWayTest, MayEndBeforeTheyStart) {
  moves.end(MemoryTier::kNear);
  moves.start(MemoryTier::kNear);
  moves.wait();
  moves.start_below(1, MemoryTier::kNear);
}

}  // namespace
}  // namespace spillway::um
