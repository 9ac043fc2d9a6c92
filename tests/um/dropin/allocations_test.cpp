#include "um/dropin/allocations.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <latch>
#include <thread>

#include "um/error.h"

namespace spillway::um {
namespace {

/// Formats spans in pages of 4 KiB: "1+2 5+1".
std::string text(const std::vector<Allocations::Span>& spans) {
  std::string all;
  for (const Allocations::Span& span : spans) {
    all += (all.empty() ? "" : " ") + std::to_string(span.offset / 4_KiB) + "+" +
           std::to_string(span.size / 4_KiB);
  }
  return all;
}

// Four pages of 4 KiB.
class AllocationsTest : public testing::Test {
 protected:
  Bytes take(Bytes size, Bytes alignment = kLine) {
    return allocations.allocate(size, alignment).value();
  }
  static constexpr Bytes kLine = 64_B;
  Allocations allocations{16_KiB, 4_KiB};
};

TEST_F(AllocationsTest, PutsSmallOnesSideBySideAndLargeOnesOnPages) {
  EXPECT_EQ(take(10_B), 0_B);
  EXPECT_EQ(take(100_B), 64_B);
  EXPECT_EQ(take(4_KiB), 4_KiB);
  EXPECT_EQ(take(1_B, 512_B), 512_B);
  EXPECT_EQ(allocations.in_use(), 64_B + 128_B + 4_KiB + 64_B);
}

TEST_F(AllocationsTest, FreesPagesWhenNothingIsOnThemAnyMore) {
  const Bytes small = take(10_B);
  const Bytes large = take(9_KiB);        // pages 1, 2 and a quarter of 3
  const Bytes tail = take(1_KiB, 1_KiB);  // page 0, the smallest space that fits
  EXPECT_EQ(tail, 13_KiB);
  EXPECT_EQ(text(allocations.free(large)), "1+2");
  EXPECT_EQ(text(allocations.free(tail)), "3+1");
  EXPECT_EQ(text(allocations.free(small)), "0+1");
  EXPECT_EQ(allocations.in_use(), 0_B);
}

TEST_F(AllocationsTest, KnowsWhoseAByteIs) {
  static_cast<void>(take(10_B));
  const Bytes second = take(100_B);
  EXPECT_EQ(allocations.around(second + 99_B)->offset, second);
  EXPECT_EQ(allocations.around(second)->size, 100_B);
  EXPECT_FALSE(allocations.around(second + 100_B));
  EXPECT_FALSE(allocations.around(10_B));  // between the two
  EXPECT_TRUE(allocations.starts_at(second));
  EXPECT_FALSE(allocations.starts_at(second + 1_B));
}

TEST_F(AllocationsTest, WhatHasEndedKeepsItsRoomUntilItIsFreed) {
  const Bytes offset = take(16_KiB);
  allocations.end(offset);
  EXPECT_FALSE(allocations.starts_at(offset));
  EXPECT_FALSE(allocations.around(offset));
  EXPECT_EQ(allocations.allocate(1_B, 64_B), std::nullopt);
  EXPECT_THROW(allocations.end(offset), ContractError);
  EXPECT_EQ(text(allocations.free(offset)), "0+4");
  EXPECT_EQ(take(16_KiB), 0_B);
}

class MovesUnderWayTest : public testing::Test {
 protected:
  /// Runs `wait` in a thread and `end` in this one. Returns true when `wait` returned after `end`
  /// began.
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
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();  // time to return too early
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
