#include "tests/prefetch/drawn_chain.h"

namespace spillway::prefetch {
namespace {

using namespace testing;

// y0 has one page, y1 four, all other blocks two. With y0 to y3 away while they are idle, b4 has
// y3, y4, d4 and d3 near, 8 pages; it needs 15 when nothing moves.
using LargestFirstTest = UnevenChain;

// 8 and y1 are 12; y2 makes 14 and must go; y3 is back before b4; y0 makes 13.
TEST_F(LargestFirstTest, KeepsTheLargestThatFit) {
  EXPECT_EQ(names(plan_with("largest-first", 13).offloads), "y2");
}

TEST_F(LargestFirstTest, MovesSmallBlocksWhereTheLargestTakeTheRoom) {
  EXPECT_EQ(names(plan_with("largest-first", 12).offloads), "y0 y2");
}

// 8 and y1 are more than 11; with y2 and y0 they are 11.
TEST_F(LargestFirstTest, GoesOnWithSmallerBlocksWhereTheLargestDoesNotFit) {
  EXPECT_EQ(names(plan_with("largest-first", 11).offloads), "y1");
}

// b4 needs 15 pages, b3 with y0 to y3, d3 and d2 13: y2 is back as soon as b4 has ended, which is
// when b3 needs it.
TEST_F(LargestFirstTest, BringsBackAsSoonAsThereIsRoom) {
  const Plan plan = plan_with("largest-first", 13);
  EXPECT_EQ(plan.prefetches[0].after.runs, 7U);
  EXPECT_EQ(plan.runs[7].after.prefetches, 1U);
  EXPECT_EQ(plan.runs[5].after.offloads, 0U);
  EXPECT_EQ(plan.runs[6].after.offloads, 1U);
}

}  // namespace
}  // namespace spillway::prefetch
