// Learned prefetch, and other threads.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/src/dropin/learned_space.h"

namespace spillway::dropin {
namespace {

using LearnedThreads = LearnedSpace;

// Each thread goes over its own pages; together they are no pattern, or one by chance.
TEST_F(LearnedThreads, MayBeUsedByEightThreads) {
  constexpr std::size_t kThreads = 8;
  mark();
  std::array<std::size_t, kThreads> wrong{};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::byte* const block = take(2);
      std::memset(block, 0, 2 * kPage);
      for (std::uint8_t i = 0; i < 12; ++i) {
        std::byte* const fresh = take(1);
        touch(fresh, 1, SPILLWAY_UM_WRITE);
        touch(block, 2, SPILLWAY_UM_READ_WRITE);
        wrong[t] += add_one(block, 2, i);
        give(fresh);
        if (t % 4 == 0) ok(spillway_um_mark_iteration(space));
      }
      give(block);
    });
  }
  for (std::thread& each : threads) each.join();
  for (const std::size_t each : wrong) EXPECT_EQ(each, 0U);
  mark();
  EXPECT_EQ(counters().iterations, 2 * 12 + 1U);
  EXPECT_EQ(counters().touches, 3 * 12 * kThreads);
}

// Seven threads fill, move and check what they have allocated before, and allocate what is too
// small to be learned; meanwhile one goes over its pages again and again.
TEST_F(LearnedThreads, AreFollowedWhileOtherThreadsMoveTheirOwn) {
  constexpr std::size_t kOthers = 7;
  constexpr std::size_t kPages = 16;
  std::byte* const block = take(kPages);
  std::memset(block, 0, kPages * kPage);
  std::array<std::size_t, kOthers> wrong{};
  std::array<std::byte*, kOthers> own{};
  for (std::byte*& each : own) each = take(1);
  std::atomic<bool> is_over = false;
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kOthers; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint8_t i = 0; !is_over; ++i) {
        std::memset(own[t], i, kPage);
        ok(spillway_um_offload(space, own[t], kPage));
        void* small = nullptr;
        ok(spillway_um_allocate(space, 100, 0, &small));
        ok(spillway_um_prefetch(space, own[t], kPage));
        give(small);
        for (std::size_t at = 0; at < kPage; at += 512) wrong[t] += own[t][at] != std::byte{i};
      }
    });
  }
  mark();
  std::size_t wrong_here = 0;
  for (std::uint8_t iteration = 0; iteration < 12; ++iteration) {
    for (std::size_t i = 0; i < kPages; ++i) {
      touch(block + i * kPage, 1, SPILLWAY_UM_READ_WRITE);
      wrong_here += add_one(block + i * kPage, 1, iteration);
    }
    mark();
  }
  is_over = true;
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(wrong_here, 0U);
  for (const std::size_t each : wrong) EXPECT_EQ(each, 0U);
  EXPECT_EQ(counters().followed, 9U);
  EXPECT_EQ(counters().hits, 9 * kPages);
}

}  // namespace
}  // namespace spillway::dropin
