#include "prefetch/planners/capacity.h"

#include <gtest/gtest.h>

#include "prefetch/verify/verify.h"
#include "tests/prefetch/toy.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

// y0 to y4 of two pages each; the peak is 14 pages, at b4. One page less, and all of y0 leaves.
TEST(Capacity, MovesWholeBlocksTheLongestUnusedFirst) {
  const TaskGraph graph = chain(4, pages(2));
  const Profile profile = flat_profile(graph, 100ns);
  const Plan plan = std::get<Plan>(Capacity{}.plan(problem(graph, profile, pages(13))));
  ASSERT_EQ(plan.offloads.size(), 1U);
  EXPECT_EQ(graph[plan.offloads[0].data].name, "y0");
  EXPECT_EQ(plan.offloads[0].size, pages(2));
  EXPECT_TRUE(moves_whole_blocks(plan, graph));
}

// y0 is used by f1, run 1, and b1, run 9. In a pool of 12 pages the runs up to f4 (10 pages), loss
// (12) and from b3 on (12, then less) have room for it, b4 (14), run 6, has not: it may come back
// as soon as b4 has ended.
TEST(Capacity, BringsBackAsSoonAsThereIsRoom) {
  const TaskGraph graph = chain(4, pages(2));
  const Profile profile = flat_profile(graph, 100ns);
  const Plan plan = std::get<Plan>(Capacity{}.plan(problem(graph, profile, pages(12))));
  ASSERT_EQ(plan.prefetches.size(), 1U);
  EXPECT_EQ(plan.prefetches[0].after.runs, 7U);
  EXPECT_TRUE(std::holds_alternative<Verified>(verify(graph, plan)));
}

TEST(Capacity, RecomputesNothingAndSaysWhatTheSmallestBudgetIs) {
  const TaskGraph graph = chain(4, pages(2));
  const Profile profile = flat_profile(graph, 100ns);
  Problem given = problem(graph, profile, pages(8));
  given.may_recompute = true;
  EXPECT_EQ(std::get<Plan>(Capacity{}.plan(given)).runs.size(), graph.tasks.size());
  given.budget = pages(7);
  const auto result = Capacity{}.plan(given);
  ASSERT_TRUE(std::holds_alternative<Infeasible>(result));
  EXPECT_EQ(std::get<Infeasible>(result).smallest_budget, pages(8));
}

}  // namespace
}  // namespace spillway::prefetch
