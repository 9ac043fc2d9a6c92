#include "tests/prefetch/drawn_chain.h"

namespace spillway::prefetch {
namespace {

using namespace testing;

using Capacity = ToyChain;

// The peak is 14 pages, at b4. One page less, and all of y0 leaves.
TEST_F(Capacity, MovesWholeBlocksTheLongestUnusedFirst) {
  const Plan plan = plan_with("capacity", 13);
  EXPECT_EQ(names(plan.offloads), "y0");
  EXPECT_EQ(plan.offloads[0].size, pages(2));
  EXPECT_TRUE(moves_whole_blocks(plan, graph));
}

// y0 is used by f1, run 1, and b1, run 9. In a pool of 12 pages the runs up to f4 (10 pages), loss
// (12) and from b3 on (12, then less) have room for it, b4 (14), run 6, has not: it may come back
// as soon as b4 has ended.
TEST_F(Capacity, BringsBackAsSoonAsThereIsRoom) {
  const Plan plan = plan_with("capacity", 12);
  ASSERT_EQ(plan.prefetches.size(), 1U);
  EXPECT_EQ(plan.prefetches[0].after.runs, 7U);
  EXPECT_EQ(reason_against(graph, plan), "");
}

TEST_F(Capacity, RecomputesNothing) {
  Problem given = with_pool(8);
  given.may_recompute = true;
  EXPECT_EQ(planned("capacity", given).runs.size(), graph.tasks.size());
}

}  // namespace
}  // namespace spillway::prefetch
