#include "prefetch/planners/fractional.h"

#include <gtest/gtest.h>

#include "prefetch/simulate/simulate.h"
#include "prefetch/verify/verify.h"
#include "tests/prefetch/toy.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

Plan plan_for(const Problem& problem) { return std::get<Plan>(Fractional{}.plan(problem)); }

um::Bytes moved(const std::vector<Move>& moves) {
  um::Bytes total;
  for (const Move& move : moves) total += move.size;
  return total;
}

TEST(Fractional, MovesNothingWhenEverythingFits) {
  const TaskGraph graph = chain(4, pages(2));
  const Profile profile = flat_profile(graph, 100ns);
  const Plan plan = plan_for(problem(graph, profile, pages(14)));
  EXPECT_TRUE(plan.offloads.empty());
  EXPECT_TRUE(plan.prefetches.empty());
}

// The peak is 14 pages, at b4; two pages less means that exactly two pages of the oldest block
// leave.
TEST(Fractional, MovesOnlyWhatDoesNotFitAndTheOldestFirst) {
  const TaskGraph graph = chain(4, pages(2));
  const Profile profile = flat_profile(graph, 100ns);
  const Plan plan = plan_for(problem(graph, profile, pages(12)));
  ASSERT_EQ(plan.offloads.size(), 1U);
  EXPECT_EQ(graph[plan.offloads[0].data].name, "y0");
  EXPECT_EQ(moved(plan.offloads), pages(2));
}

TEST(Fractional, MovesPartsOfBlocksUnlessToldOtherwise) {
  const TaskGraph graph = chain(4, pages(2));
  const Profile profile = flat_profile(graph, 100ns);
  Problem tight = problem(graph, profile, pages(13));
  EXPECT_EQ(moved(plan_for(tight).offloads), pages(1));
  tight.whole_blocks = true;
  EXPECT_EQ(moved(plan_for(tight).offloads), pages(2));
  EXPECT_TRUE(moves_whole_blocks(plan_for(tight), graph));
}

// Eight layers of two pages, 20 ns a page there and back, at a pool of 14 pages (peak 22): eight
// pages must be out before b8 (after nine tasks of 100 ns, the first of which ends at 100 ns) and
// there is time for that: no stall.
TEST(Fractional, HidesItsMovesWhereThereIsTime) {
  const TaskGraph graph = chain(8, pages(2));
  const Profile profile = flat_profile(graph, 100ns);
  const Plan plan = plan_for(problem(graph, profile, pages(14)));
  EXPECT_EQ(simulate(plan, profile).makespan(), compute_time(profile, plan.runs));
}

TEST(Fractional, SaysWhatTheSmallestBudgetIs) {
  const TaskGraph graph = chain(4, pages(2));
  const Profile profile = flat_profile(graph, 100ns);
  const auto result = Fractional{}.plan(problem(graph, profile, pages(7)));
  ASSERT_TRUE(std::holds_alternative<Infeasible>(result));
  EXPECT_EQ(std::get<Infeasible>(result).smallest_budget, pages(8));
  EXPECT_EQ(plan_for(problem(graph, profile, pages(8))).budget, pages(8));
}

// f3 has a fast algorithm with a workspace. With room for it, it is taken; where it would push out
// more than it saves, it is not.
TEST(Fractional, TakesAFastAlgorithmOnlyWhereItsWorkspacePays) {
  TaskGraph graph = chain(4, pages(2));
  graph.tasks[3].algorithms = {{.name = "slow"}, {.name = "fast", .workspace = pages(6)}};
  Profile profile = flat_profile(graph, 100ns);
  profile.durations[3] = {100ns, 60ns};
  EXPECT_EQ(plan_for(problem(graph, profile, pages(14))).runs[3].algorithm, 1U);
  profile.durations[3] = {100ns, 99ns};
  profile.link = {.offload = um::Bandwidth{1e9}, .prefetch = um::Bandwidth{1e9}};  // 4 us a page
  EXPECT_EQ(plan_for(problem(graph, profile, pages(10))).runs[3].algorithm, 0U);
}

// A block that is used three times, far apart, twice away: the second absence transfers nothing on
// the way out.
TEST(Fractional, DoesNotTransferAnUnchangedBlockOutTwice) {
  TaskGraph graph;
  const DataId x = graph.add(DataBlock{.name = "x", .size = pages(2)});
  const DataId a = graph.add(DataBlock{.name = "a", .size = pages(3)});
  graph.add(Task{.name = "make", .writes = {x}});
  graph.add(Task{.name = "big1", .writes = {a}});
  graph.add(Task{.name = "use1", .reads = {x}});
  graph.add(Task{.name = "big2", .writes = {a}});
  graph.add(Task{.name = "use2", .reads = {x}});
  const Profile profile = flat_profile(graph, 100ns);
  const Plan plan = plan_for(problem(graph, profile, pages(3)));
  ASSERT_EQ(plan.offloads.size(), 2U);
  EXPECT_FALSE(plan.offloads[0].is_clean);
  EXPECT_TRUE(plan.offloads[1].is_clean);
  EXPECT_TRUE(std::holds_alternative<Verified>(verify(graph, plan)));
}

// As above, but x is written when it is back, one task before it leaves again: the far copy is old.
TEST(Fractional, TransfersAChangedBlockOutAgain) {
  TaskGraph graph;
  const DataId x = graph.add(DataBlock{.name = "x", .size = pages(2)});
  const DataId a = graph.add(DataBlock{.name = "a", .size = pages(3)});
  graph.add(Task{.name = "make", .writes = {x}});
  graph.add(Task{.name = "big1", .writes = {a}});
  graph.add(Task{.name = "change", .reads = {x}, .writes = {x}});
  graph.add(Task{.name = "use1", .reads = {x}});
  graph.add(Task{.name = "big2", .writes = {a}});
  graph.add(Task{.name = "use2", .reads = {x}});
  const Profile profile = flat_profile(graph, 100ns);
  const Plan plan = plan_for(problem(graph, profile, pages(3)));
  ASSERT_EQ(plan.offloads.size(), 2U);
  EXPECT_FALSE(plan.offloads[1].is_clean);
  EXPECT_TRUE(std::holds_alternative<Verified>(verify(graph, plan)));
}

}  // namespace
}  // namespace spillway::prefetch
