#include "um/memory.h"

#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "um/arena.h"
#include "um/error.h"

namespace spillway::um {
namespace {

TEST(Ledger, RemembersItsPeak) {
  Ledger ledger{100_B};
  ledger.charge(60_B);
  ledger.release(50_B);
  ledger.charge(20_B);
  EXPECT_EQ(ledger.in_use(), 30_B);
  EXPECT_EQ(ledger.peak(), 60_B);
}

TEST(Ledger, ForgetsItsPeakWhenTold) {
  Ledger ledger{100_B};
  ledger.charge(60_B);
  ledger.release(50_B);
  ledger.reset_peak();
  EXPECT_EQ(ledger.peak(), 10_B);  // the bytes still in use
  ledger.charge(20_B);
  EXPECT_EQ(ledger.peak(), 30_B);
}

TEST(Ledger, RefusesTheByteTooMuch) {
  Ledger ledger{100_B};
  ledger.charge(100_B);
  EXPECT_FALSE(ledger.try_charge(1_B));
  EXPECT_THROW(ledger.charge(1_B), OutOfMemory);
  EXPECT_EQ(ledger.in_use(), 100_B);
}

TEST(Ledger, NeverExceedsItsLimitFromManyThreads) {
  Ledger ledger{10_B};
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10'000; ++i) {
        if (ledger.try_charge(3_B)) ledger.release(3_B);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ledger.in_use(), 0_B);
  EXPECT_LE(ledger.peak(), 10_B);
}

class NoMemory final : public Memory {
 public:
  std::byte* allocate(Bytes /*size*/) override { throw OutOfMemory{"none"}; }
  void free(std::byte* /*address*/, Bytes /*size*/) noexcept override {}
};

TEST(LimitedMemory, CountsNothingWhenTheUpstreamFails) {
  NoMemory none;
  Ledger ledger{100_B};
  LimitedMemory limited{none, ledger};
  EXPECT_THROW(Block(limited, 10_B), OutOfMemory);
  EXPECT_EQ(ledger.in_use(), 0_B);
}

Arena small_arena() { return Arena{100_B, 1_B}; }

void expect_one_free_segment(Arena& arena) {
  const Bytes free = arena.size() - arena.in_use();
  if (free == 0_B) return;
  const auto all = arena.allocate(free);
  ASSERT_TRUE(all);
  arena.free(*all);
}

void expect_apart(const std::map<Bytes, Bytes>& live, const Arena::Slide& slide) {
  for (const auto& [offset, size] : live) {
    EXPECT_TRUE(slide.spare_size == 0_B || offset + size <= slide.spare ||
                slide.spare + slide.spare_size <= offset);
  }
  EXPECT_TRUE(slide.spare_size == 0_B || slide.from + slide.size <= slide.spare);
}

// Segments of 10 bytes with 20 free before the first, 30 before the second, 10 before the third.
TEST(Arena, SlidesByTheLargestFreeSegmentOrHasItToSpare) {
  Arena arena = small_arena();
  const std::vector<Bytes> sizes{20_B, 10_B, 30_B, 10_B, 10_B, 20_B};
  std::vector<Bytes> at;
  for (const Bytes size : sizes) at.push_back(arena.allocate(size).value());
  for (const std::size_t i : {0U, 2U, 4U}) arena.free(at[i]);
  std::vector<Bytes> distances;
  std::vector<Bytes> spares;
  arena.compact([&](const Arena::Slide& slide) {
    distances.push_back(slide.from - slide.to);
    spares.push_back(slide.spare_size);
  });
  EXPECT_EQ(distances, (std::vector<Bytes>{20_B, 50_B, 60_B}));
  EXPECT_EQ(spares, (std::vector<Bytes>{30_B, 0_B, 0_B}));
}

TEST(Arena, TakesTheSmallestSegmentThatFits) {
  Arena arena = small_arena();
  const Bytes a = arena.allocate(30_B).value();
  const Bytes b = arena.allocate(10_B).value();
  const Bytes c = arena.allocate(20_B).value();
  const Bytes d = arena.allocate(10_B).value();
  arena.free(a);  // free: [0, 30)
  arena.free(c);  // free: [40, 60), and the tail [70, 100)
  EXPECT_EQ(arena.allocate(15_B), 40_B);
  arena.free(b);
  arena.free(d);
}

/// Returns where a scan of all free segments puts `size` bytes at a multiple of `alignment`: in the
/// smallest that fits, the lowest of equals. `live` maps offsets to sizes.
std::optional<Bytes> best_fit(const std::map<Bytes, Bytes>& live, Bytes whole, Bytes size,
                              Bytes alignment) {
  std::optional<Bytes> best;
  Bytes best_size;
  Bytes begin;
  const auto consider = [&](Bytes end) {
    const Bytes at = round_up(begin, alignment);
    if (end >= at + size && (!best || end - begin < best_size)) {
      best = at;
      best_size = end - begin;
    }
  };
  for (const auto& [offset, taken] : live) {
    consider(offset);
    begin = offset + taken;
  }
  consider(whole);
  return best;
}

TEST(Arena, ChoosesAsAScanOfAllSegmentsWould) {
  std::mt19937 random{7};
  for (int round = 0; round < 20; ++round) {
    Arena arena{4096_B, 1_B};
    std::map<Bytes, Bytes> live;
    for (int step = 0; step < 400; ++step) {
      if (!live.empty() && random() % 5 < 2) {
        const auto leaves = std::next(live.begin(), static_cast<long>(random() % live.size()));
        arena.free(leaves->first);
        live.erase(leaves);
        continue;
      }
      const Bytes size{1 + random() % 96};
      const Bytes alignment{std::uint64_t{1} << random() % 6};
      const auto expected = best_fit(live, 4096_B, size, alignment);
      const auto found = arena.allocate(size, alignment);
      ASSERT_EQ(found, expected) << round << ' ' << step;
      if (found) live.emplace(*found, size);
    }
  }
}

TEST(Arena, JoinsFreedNeighbours) {
  Arena arena = small_arena();
  const Bytes a = arena.allocate(50_B).value();
  const Bytes b = arena.allocate(50_B).value();
  EXPECT_EQ(arena.allocate(1_B), std::nullopt);
  arena.free(a);
  arena.free(b);
  EXPECT_EQ(arena.in_use(), 0_B);
  EXPECT_EQ(arena.allocate(100_B), 0_B);
}

TEST(Arena, AlignsOneAllocationMoreThanTheOthers) {
  Arena arena = small_arena();
  const Bytes a = arena.allocate(10_B).value();
  const Bytes b = arena.allocate(20_B, 32_B).value();
  EXPECT_EQ(b, 32_B);
  EXPECT_EQ(arena.in_use(), 30_B);
  EXPECT_EQ(arena.allocate(22_B), 10_B);                // the gap before it is free
  EXPECT_EQ(arena.allocate(40_B, 64_B), std::nullopt);  // 64 to 100 are free: 36 bytes
  EXPECT_EQ(arena.allocate(36_B, 64_B), 64_B);
  arena.free(10_B);
  arena.free(64_B);
  arena.free(b);
  arena.free(a);
  EXPECT_EQ(arena.allocate(100_B, 64_B), 0_B);  // one segment again
}

TEST(Arena, FindsNoRoomForWhatIsLargerThanAllOfIt) {
  Arena arena = small_arena();
  EXPECT_EQ(arena.allocate(Bytes{~std::uint64_t{0}}), std::nullopt);
}

TEST(Arena, CompactionMakesOneFreeSegment) {
  Arena arena = small_arena();
  const Bytes a = arena.allocate(40_B).value();
  const Bytes b = arena.allocate(20_B).value();
  arena.free(a);
  EXPECT_EQ(arena.allocate(70_B), std::nullopt);
  std::vector<Bytes> moved;
  arena.compact([&](const Arena::Slide& slide) {
    moved = {slide.from, slide.to, slide.size, slide.spare, slide.spare_size};
  });
  // The first 40 bytes and the last 40 are free.
  EXPECT_EQ(moved, (std::vector<Bytes>{b, 0_B, 20_B, 60_B, 40_B}));
  EXPECT_EQ(arena.allocate(80_B), 20_B);
  arena.free(0_B);  // the new place of b
}

TEST(Arena, RefusesToFreeWhatItDidNotHandOut) {
  Arena arena = small_arena();
  EXPECT_THROW(arena.free(5_B), ContractError);
}

// A thousand random allocations, frees and compactions. Segments never overlap, and a size that
// does not fit after a compaction exceeds the free bytes.
TEST(Arena, NeverOverlapsUnderRandomUse) {
  std::mt19937 random{1};
  Arena arena{64_KiB, 64_B};
  std::map<Bytes, Bytes> live;  // offset, rounded size
  for (int i = 0; i < 1000; ++i) {
    const Bytes size{random() % 8000 + 1};
    if (random() % 2 == 0 && !live.empty()) {
      const auto victim = std::next(live.begin(), static_cast<long>(random() % live.size()));
      arena.free(victim->first);
      live.erase(victim);
    } else if (const auto at = arena.allocate(size)) {
      live.emplace(*at, round_up(size, 64_B));
    } else {
      std::map<Bytes, Bytes> after = live;
      arena.compact([&](const Arena::Slide& slide) {
        EXPECT_EQ(after.at(slide.from), slide.size);
        after.erase(slide.from);
        after.emplace(slide.to, slide.size);
        expect_apart(after, slide);
      });
      live = after;
      expect_one_free_segment(arena);
    }
    Bytes end;
    Bytes total;
    for (const auto& [offset, length] : live) {
      ASSERT_GE(offset, end);
      end = offset + length;
      total += length;
    }
    ASSERT_LE(end, arena.size());
    ASSERT_EQ(total, arena.in_use());
  }
}

}  // namespace
}  // namespace spillway::um
