#include "um/arena.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "um/error.h"

namespace spillway::um {
namespace {

Arena small_arena() { return Arena{100_B, 1_B}; }

void expect_one_free_segment(Arena& arena) {
  const Bytes free = arena.size() - arena.in_use();
  if (free == 0_B) return;
  const auto all = arena.allocate(free);
  ASSERT_TRUE(all);
  arena.free(*all);
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

TEST(Arena, CompactionMakesOneFreeSegment) {
  Arena arena = small_arena();
  const Bytes a = arena.allocate(40_B).value();
  const Bytes b = arena.allocate(20_B).value();
  arena.free(a);
  EXPECT_EQ(arena.allocate(70_B), std::nullopt);
  std::vector<Bytes> moved;
  arena.compact([&](Bytes from, Bytes to, Bytes size) { moved = {from, to, size}; });
  EXPECT_EQ(moved, (std::vector<Bytes>{b, 0_B, 20_B}));
  EXPECT_EQ(arena.allocate(80_B), 20_B);
  arena.free(0_B);  // b lives at its new place
}

TEST(Arena, RefusesToFreeWhatItDidNotHandOut) {
  Arena arena = small_arena();
  EXPECT_THROW(arena.free(5_B), ContractError);
}

// A thousand random allocations, frees and compactions: no two segments ever overlap, and what does
// not fit after a compaction exceeds the free bytes.
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
      arena.compact([&](Bytes from, Bytes to, Bytes length) {
        EXPECT_EQ(after.at(from), length);
        after.erase(from);
        after.emplace(to, length);
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
