#include "um/dropin/space.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <latch>
#include <optional>
#include <thread>

#include "um/dropin/allocations.h"
#include "um/error.h"
#include "um/host/host_device.h"

namespace spillway::um {
namespace {

/// Fires when the test sets the flag.
class ScriptedEvent final : public Event {
 public:
  explicit ScriptedEvent(std::atomic<bool>& fired) : fired_{fired} {}
  [[nodiscard]] bool has_fired() const override { return fired_; }
  void wait() const override { fired_ = true; }  // as if the stream reached it meanwhile

 private:
  std::atomic<bool>& fired_;
};

// Sixteen pages of 64 KiB with room for four near.
class SpaceTest : public testing::Test {
 protected:
  static constexpr Bytes kPage = 64_KiB;

  [[nodiscard]] static SpaceOptions options() {
    return {.near = 4 * kPage, .capacity = 16 * kPage, .page = kPage};
  }
  [[nodiscard]] std::byte* take(std::uint64_t pages) { return space->allocate(pages * kPage, 0_B); }
  [[nodiscard]] static std::byte* page(std::byte* address, std::uint64_t index) {
    return address + index * kPage.count();
  }

  HostDevice device;
  std::optional<Space> space{std::in_place, device, options()};
};

TEST_F(SpaceTest, HoldsMoreThanIsNear) {
  std::byte* const all = take(16);
  std::memset(all, 1, (16 * kPage).count());
  for (std::uint64_t i = 0; i < 16; ++i) *page(all, i) = static_cast<std::byte>(i);
  for (std::uint64_t i = 0; i < 16; ++i) EXPECT_EQ(*page(all, i), static_cast<std::byte>(i));
  EXPECT_EQ(space->counters().near_peak, 4 * kPage);
  EXPECT_GE(space->counters().moves.evictions, 12U);
}

TEST_F(SpaceTest, KeepsWritesToWhatWasPrefetched) {
  std::byte* const two = take(2);
  std::memset(two, 1, (2 * kPage).count());
  for (int round = 2; round < 5; ++round) {
    space->prefetch(two, 2 * kPage, MemoryTier::kFar);
    space->synchronize();
    EXPECT_EQ(space->near_bytes(two, 2 * kPage), 0_B);
    space->prefetch(two, 2 * kPage, MemoryTier::kNear);
    space->synchronize();
    EXPECT_EQ(space->near_bytes(two, 2 * kPage), 2 * kPage);
    EXPECT_EQ(*page(two, 1), static_cast<std::byte>(round - 1));
    std::memset(two, round, (2 * kPage).count());  // undeclared
  }
  EXPECT_EQ(space->counters().moves.faults, 2U);  // the first touches
}

TEST_F(SpaceTest, APrefetchOfMoreThanIsNearBringsWhatHasRoom) {
  std::byte* const all = take(16);
  std::memset(all, 1, (16 * kPage).count());
  space->prefetch(all, 16 * kPage, MemoryTier::kFar);
  space->synchronize();
  const Counters before = space->counters().moves;
  space->prefetch(all, 16 * kPage, MemoryTier::kNear);
  space->synchronize();
  const Counters after = space->counters().moves;
  EXPECT_EQ(after.bytes_prefetched - before.bytes_prefetched, 4 * kPage);
  EXPECT_EQ(after.bytes_offloaded, before.bytes_offloaded);
  EXPECT_EQ(after.refused_hints, 12U);
  EXPECT_EQ(space->near_bytes(all, 4 * kPage), 4 * kPage);  // the pages used first
}

TEST_F(SpaceTest, TouchesOfMoreThanIsNearLeaveRoomForFaults) {
  std::byte* const all = take(16);
  space->touch(all, 16 * kPage, Access::kReadWrite);
  for (std::uint64_t i = 0; i < 16; ++i) *page(all, i) = std::byte{1};
  space->touch(all + 1, 16 * kPage - 2_B, Access::kRead);
  EXPECT_EQ(space->counters().touches, 2U);
  EXPECT_EQ(space->counters().moves.faults, 16U);
}

TEST_F(SpaceTest, WhatIsTouchedIsEvictedLast) {
  std::byte* const five = take(5);
  for (std::uint64_t i = 0; i < 4; ++i) *page(five, i) = std::byte{1};
  space->touch(five, 1_B, Access::kRead);  // otherwise the oldest
  *page(five, 4) = std::byte{1};
  EXPECT_EQ(space->near_bytes(page(five, 0), kPage), kPage);
  EXPECT_EQ(space->near_bytes(page(five, 1), kPage), 0_B);
}

TEST_F(SpaceTest, ATouchBeforeAnOverwriteKeepsWhatIsThere) {
  std::byte* const one = take(1);
  std::memset(one, 1, kPage.count());
  space->prefetch(one, kPage, MemoryTier::kFar);
  space->synchronize();
  space->touch(one, kPage, Access::kWrite);
  EXPECT_EQ(*one, std::byte{1});
}

TEST_F(SpaceTest, RoundsMovesOutwardAndDiscardsInward) {
  std::byte* const three = take(3);
  std::memset(three, 1, (3 * kPage).count());
  space->prefetch(page(three, 1) - 1, 2_B, MemoryTier::kFar);  // pages 0 and 1
  space->synchronize();
  EXPECT_EQ(space->near_bytes(three, 3 * kPage), kPage);
  space->discard(three + 1, 3 * kPage - 1_B);              // pages 1 and 2
  EXPECT_EQ(space->counters().moves.discarded_pages, 1U);  // only 2 was near
  EXPECT_EQ(*three, std::byte{1});
  EXPECT_EQ(*(page(three, 1) - 1), std::byte{1});
}

TEST_F(SpaceTest, FreeingGivesNearMemoryBackWithoutSavingIt) {
  std::byte* const four = take(4);
  std::memset(four, 1, (4 * kPage).count());
  EXPECT_EQ(space->counters().near, 4 * kPage);
  space->free(four);
  EXPECT_EQ(space->counters().near, 0_B);
  EXPECT_EQ(space->counters().moves.bytes_offloaded, 0_B);
  EXPECT_EQ(space->counters().allocated, 0_B);
}

TEST_F(SpaceTest, AdviceEndsWithTheAllocation) {
  std::byte* const first = take(1);
  space->advise(first, kPage, Advice::kPreferFar);
  space->free(first);
  std::byte* const five = take(5);
  for (std::uint64_t i = 0; i < 3; ++i) *page(five, i + 1) = std::byte{1};
  *five = std::byte{1};  // the most recent, on the page that had the advice
  *page(five, 4) = std::byte{1};
  EXPECT_EQ(space->near_bytes(five, kPage), kPage);
}

TEST_F(SpaceTest, MemoryFreedOnAStreamIsGivenOutOnlyWhenTheStreamGotThere) {
  std::atomic<bool> fired = false;
  std::byte* const first = take(8);
  space->free_after(first, std::make_unique<ScriptedEvent>(fired));
  EXPECT_THROW(space->free(first), NotAllocated);
  EXPECT_EQ(space->counters().frees, 1U);
  EXPECT_EQ(space->counters().allocated, 8 * kPage);
  EXPECT_NE(take(8), first);
  fired = true;
  EXPECT_EQ(take(8), first);
}

TEST_F(SpaceTest, WaitsForAStreamRatherThanFindNoRoom) {
  std::atomic<bool> fired = false;
  space->free_after(take(16), std::make_unique<ScriptedEvent>(fired));
  static_cast<void>(take(16));
  EXPECT_TRUE(fired);
  EXPECT_THROW(static_cast<void>(take(1)), OutOfMemory);
}

TEST_F(SpaceTest, ASpaceThatEndsWaitsForStreams) {
  std::atomic<bool> fired = false;
  space->free_after(take(1), std::make_unique<ScriptedEvent>(fired));
  space.reset();
  EXPECT_TRUE(fired);
}

TEST_F(SpaceTest, ChoosesPagesThatLeaveSomethingToEvict) {
  for (const auto& [near, page] : {std::pair{64_MiB, 2_MiB}, std::pair{1_MiB, 64_KiB}}) {
    space.emplace(device, SpaceOptions{.near = near, .capacity = 2 * near});
    std::byte* const whole = space->allocate(page, 0_B);
    space->prefetch(whole, 1_B, MemoryTier::kNear);
    space->synchronize();
    EXPECT_EQ(space->counters().near, page);
  }
}

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
