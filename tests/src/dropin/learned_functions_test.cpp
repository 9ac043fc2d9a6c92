// Learned prefetch through the C functions, also by several threads: what is learned, what is not,
// and that content stays.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/src/dropin/space_of_c.h"

namespace spillway::dropin {
namespace {

// Thirty-two pages of 64 KiB with room for eight near, on a slow link, so that faults are
// expensive.
class LearnedSpace : public SpaceOfC {
 protected:
  static constexpr std::size_t kNear = 8;

  void SetUp() override {
    spillway_um_options wanted = options();
    wanted.near_bytes = kNear * kPage;
    wanted.capacity_bytes = 32 * kPage;
    wanted.link_bytes_per_second = 2e9;
    make(wanted);
  }

  static void ok(spillway_um_status status) {
    EXPECT_EQ(status, SPILLWAY_UM_OK) << spillway_um_last_error();
  }
  [[nodiscard]] std::byte* take(std::size_t pages) const { return SpaceOfC::take(pages * kPage); }
  void give(void* address) const { ok(spillway_um_free(space, address)); }
  void touch(std::byte* address, std::size_t pages, int access) const {
    ok(spillway_um_touch(space, address, pages * kPage, access));
  }
  // Ends an iteration and waits for its replay plan and moves.
  void mark() const {
    ok(spillway_um_mark_iteration(space));
    ok(spillway_um_synchronize(space));
  }
  [[nodiscard]] spillway_um_learned_counters counters() const {
    spillway_um_learned_counters read{};
    read.version = SPILLWAY_UM_LEARNED_COUNTERS_VERSION;
    ok(spillway_um_get_learned_counters(space, &read));
    EXPECT_EQ(read.iterations, read.recorded + read.followed + read.abandoned + read.idle);
    EXPECT_EQ(read.touches, read.hits + read.misses + read.unguided);
    return read;
  }
  [[nodiscard]] std::string status() const {
    std::array<char, 200> text{};
    ok(spillway_um_learned_status(space, text.data(), text.size()));
    return text.data();
  }
  // Adds one to a byte of each page in [0, pages), in about half a millisecond per page. Returns
  // how many bytes were not `expected` before.
  static std::size_t add_one(std::byte* block, std::size_t pages, std::uint8_t expected) {
    std::size_t wrong = 0;
    for (std::size_t page = 0; page < pages; ++page) {
      for (std::size_t i = page * kPage; i < (page + 1) * kPage; i += 64) {
        const auto now = std::to_integer<std::uint8_t>(block[i]);
        if (now != expected) ++wrong;
        block[i] = std::byte(now + 1);
      }
      const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds{300};
      while (std::chrono::steady_clock::now() < end) {
      }
    }
    return wrong;
  }
};

using LearnedFunctions = LearnedSpace;

TEST_F(LearnedFunctions, PrefetchAStreamAheadOfItsTouches) {
  constexpr std::size_t kPages = 24;
  std::byte* const block = take(kPages);
  std::memset(block, 0, kPages * kPage);
  std::size_t wrong = 0;
  mark();
  EXPECT_NE(status().find("recording"), std::string::npos) << status();
  for (std::uint8_t iteration = 0; iteration < 10; ++iteration) {
    for (std::size_t i = 0; i < kPages; ++i) {
      touch(block + i * kPage, 1, SPILLWAY_UM_READ_WRITE);
      wrong += add_one(block + i * kPage, 1, iteration);
      ok(spillway_um_synchronize(space));  // makes moves end in time on a busy machine
    }
    mark();
  }
  EXPECT_EQ(wrong, 0U);
  const auto seen = counters();
  EXPECT_EQ(seen.lessons, 1U);
  // Two are recorded; the third waits for the replay plan.
  EXPECT_EQ(seen.followed, 7U);
  EXPECT_EQ(seen.hits, 7 * kPages);
  EXPECT_EQ(seen.misses, 0U);
  EXPECT_GT(seen.prefetches, 0U);
  EXPECT_LE(seen.late, kNear);  // in the first cycle only
  EXPECT_EQ(status().find("following each iteration, planned "), 0U) << status();
}

// Two arrays of 8 pages, computed from each other in turn.
TEST_F(LearnedFunctions, LearnAStencilThatSwapsItsArrays) {
  constexpr std::size_t kPages = 8;
  std::byte* from = take(kPages);
  std::byte* to = take(kPages);
  std::memset(from, 0, kPages * kPage);
  mark();
  std::size_t wrong = 0;
  for (std::uint8_t iteration = 0; iteration < 12; ++iteration) {
    for (std::size_t i = 0; i < kPages; ++i) {
      touch(from + i * kPage, 1, SPILLWAY_UM_READ);
      touch(to + i * kPage, 1, SPILLWAY_UM_WRITE);
      std::memcpy(to + i * kPage, from + i * kPage, kPage);
      wrong += add_one(to + i * kPage, 1, iteration);
    }
    mark();
    std::swap(from, to);
  }
  EXPECT_EQ(wrong, 0U);
  // Four are recorded; two wait for the replay plan and for a cycle to begin.
  EXPECT_EQ(counters().followed, 6U);
  EXPECT_EQ(counters().misses, 0U);
  EXPECT_EQ(status().find("following cycles of 2 iterations, planned "), 0U) << status();
}

// Weights stay, activations come and go, and new state is computed from the old state.
TEST_F(LearnedFunctions, LearnATrainingLoop) {
  std::byte* const weights = take(8);
  std::memset(weights, 0, 8 * kPage);
  std::byte* state = take(1);
  std::memset(state, 0, kPage);
  mark();
  std::size_t wrong = 0;
  for (std::uint8_t iteration = 0; iteration < 12; ++iteration) {
    std::array<std::byte*, 4> activations{};
    for (std::size_t i = 0; i < activations.size(); ++i) {
      activations[i] = take(1);
      touch(weights + i * 2 * kPage, 1, SPILLWAY_UM_READ);
      touch(activations[i], 1, SPILLWAY_UM_WRITE);
      std::memcpy(activations[i], weights + i * 2 * kPage, kPage);
    }
    for (std::size_t i = activations.size(); i-- > 0;) {
      touch(activations[i], 1, SPILLWAY_UM_READ);
      touch(weights + i * 2 * kPage, 2, SPILLWAY_UM_READ_WRITE);
      if (std::memcmp(activations[i], weights + i * 2 * kPage, kPage) != 0) ++wrong;
      wrong += add_one(weights + i * 2 * kPage, 2, iteration);
      give(activations[i]);
    }
    std::byte* const next = take(1);
    touch(state, 1, SPILLWAY_UM_READ);
    touch(next, 1, SPILLWAY_UM_WRITE);
    std::memcpy(next, state, kPage);
    wrong += add_one(next, 1, iteration);
    give(state);
    state = next;
    mark();
  }
  EXPECT_EQ(wrong, 0U);
  EXPECT_GE(counters().followed, 4U) << status();
  EXPECT_EQ(counters().misses, 0U);
  EXPECT_EQ(status().find("following cycles of 2 iterations, planned "), 0U) << status();
}

TEST_F(LearnedFunctions, FallBackWhenThePatternChanges) {
  constexpr std::size_t kPages = 24;
  std::byte* const block = take(kPages);
  std::memset(block, 0, kPages * kPage);
  mark();
  std::size_t wrong = 0;
  std::uint8_t iteration = 0;
  const auto sweep = [&](bool is_backward) {
    for (std::size_t i = 0; i < kPages; ++i) {
      const std::size_t at = is_backward ? kPages - 1 - i : i;
      touch(block + at * kPage, 1, SPILLWAY_UM_READ_WRITE);
      wrong += add_one(block + at * kPage, 1, iteration);
    }
    ++iteration;
    mark();
  };
  for (int i = 0; i < 5; ++i) sweep(false);
  EXPECT_EQ(counters().followed, 2U);
  for (int i = 0; i < 10; ++i) sweep(true);
  EXPECT_EQ(wrong, 0U);
  EXPECT_EQ(counters().abandoned, 4U);
  EXPECT_GT(counters().misses, 0U);
  EXPECT_EQ(counters().lessons, 2U);
  // Four are abandoned, two are recorded, and one waits.
  EXPECT_EQ(counters().followed, 2U + 3U);
}

TEST_F(LearnedFunctions, LeaveWhatFitsToItself) {
  std::byte* const block = take(2);
  mark();
  for (int i = 0; i < 4; ++i) {
    touch(block, 2, SPILLWAY_UM_READ_WRITE);
    mark();
  }
  EXPECT_EQ(counters().lessons, 0U);
  EXPECT_EQ(counters().prefetches, 0U);
  EXPECT_NE(status().find("page faults alone are as fast"), std::string::npos) << status();
}

TEST_F(LearnedFunctions, IgnoreAllocationsSmallerThanAPage) {
  void* small = nullptr;
  ok(spillway_um_allocate(space, 100, 0, &small));
  mark();
  ok(spillway_um_touch(space, small, 100, SPILLWAY_UM_READ));
  mark();
  EXPECT_EQ(counters().touches, 0U);
  give(small);
}

TEST_F(LearnedFunctions, SayNothingBeforeTheFirstMark) {
  touch(take(1), 1, SPILLWAY_UM_READ);
  EXPECT_EQ(counters().iterations, 0U);
  EXPECT_EQ(counters().touches, 0U);
  EXPECT_EQ(status(), "no iteration has been marked");
}

// One thread at a time gives a pattern. The space is destroyed with moves in flight.
TEST_F(LearnedFunctions, EndWithTheirSpace) {
  std::byte* const block = take(24);
  for (int i = 0; i < 6; ++i) {
    for (std::size_t at = 0; at < 24; ++at) touch(block + at * kPage, 1, SPILLWAY_UM_READ_WRITE);
    ok(spillway_um_mark_iteration(space));
  }
  ok(spillway_um_destroy(space));
  expect_refused(spillway_um_mark_iteration(space), SPILLWAY_UM_INVALID_SPACE, "not alive");
}

TEST_F(LearnedFunctions, RefuseMisuse) {
  expect_refused(spillway_um_mark_iteration({}), SPILLWAY_UM_INVALID_SPACE, "handle 0");
  spillway_um_learned_counters read{};
  expect_refused(spillway_um_get_learned_counters(space, &read), SPILLWAY_UM_INVALID_ARGUMENT,
                 "SPILLWAY_UM_LEARNED_COUNTERS_VERSION");
  expect_refused(spillway_um_get_learned_counters(space, nullptr), SPILLWAY_UM_INVALID_ARGUMENT,
                 "NULL");
  expect_refused(spillway_um_get_learned_counters({}, &read), SPILLWAY_UM_INVALID_SPACE, "handle");
  std::array<char, 4> text{'a', 'b', 'c', 'd'};
  expect_refused(spillway_um_learned_status(space, nullptr, 4), SPILLWAY_UM_INVALID_ARGUMENT,
                 "no room");
  expect_refused(spillway_um_learned_status(space, text.data(), 0), SPILLWAY_UM_INVALID_ARGUMENT,
                 "no room");
  ok(spillway_um_learned_status(space, text.data(), text.size()));
  EXPECT_STREQ(text.data(), "no ");
  // Misuse of memory is refused with marks, too.
  std::byte* const block = take(2);
  mark();
  expect_refused(spillway_um_touch(space, block, 3 * kPage, SPILLWAY_UM_READ),
                 SPILLWAY_UM_NOT_ALLOCATED, "leaves its allocation");
  expect_refused(spillway_um_free(space, block + kPage), SPILLWAY_UM_NOT_ALLOCATED, "inside");
  touch(block, 2, SPILLWAY_UM_READ);
  give(block);
  expect_refused(spillway_um_free(space, block), SPILLWAY_UM_NOT_ALLOCATED, "freed");
  expect_refused(spillway_um_touch(space, block, 1, SPILLWAY_UM_READ), SPILLWAY_UM_NOT_ALLOCATED,
                 "freed");
}

using LearnedThreads = LearnedSpace;

// Each thread uses its own pages; together they form a pattern only by chance.
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

// Seven threads fill, move and check their allocations, and make allocations too small to be
// learned. Meanwhile one thread repeats a pattern on its pages.
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
