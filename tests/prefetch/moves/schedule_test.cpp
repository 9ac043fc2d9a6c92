#include "prefetch/moves/schedule.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/liveness.h"
#include "prefetch/moves/offload_plan.h"
#include "prefetch/moves/timed_schedule.h"
#include "tests/prefetch/planned.h"
#include "tests/prefetch/random_graph.h"
#include "tests/prefetch/random_profile.h"
#include "tests/prefetch/toy.h"

namespace spillway::prefetch {
namespace {

using namespace testing;

// x has two pages and is used by the runs 0, 4, 8 and 12. Besides x, run 2 needs three pages, and
// the runs 6 and 10 need five each. With room for five pages x must be away for the last two.
class ScheduleTest : public ::testing::Test {
 protected:
  ScheduleTest() {
    demand[2] = pages(2 + 3);
    demand[6] = demand[10] = pages(2 + 5);
    plan.runs.resize(13);
  }
  // x is away between its uses `last` and `last` + 4, and run `last` + 2 counts on its room.
  static FarInterval far_interval(Position last, Position written = 0) {
    const IdleInterval idle{.written = written, .last = last, .next = last + 4};
    return {idle, {}, pages(2), last + 2};
  }
  void schedule(const std::vector<FarInterval>& far_intervals) {
    add_moves(return_early(far_intervals, demand, pages(5)), {}, plan);
  }
  // Returns by offload whether it is clean.
  [[nodiscard]] std::vector<bool> clean() const {
    std::vector<bool> result;
    for (const Move& move : plan.offloads) result.push_back(move.is_clean);
    return result;
  }
  std::vector<um::Bytes> demand = std::vector<um::Bytes>(13, pages(2));
  Plan plan;
};

TEST_F(ScheduleTest, EveryMoveWaitsForWhatItCountsOn) {
  schedule({far_interval(4)});
  ASSERT_EQ(plan.offloads.size(), 1U);
  EXPECT_EQ(plan.offloads[0].after, (Progress{.runs = 5}));  // run 4 has ended
  ASSERT_EQ(plan.prefetches.size(), 1U);
  EXPECT_EQ(plan.prefetches[0].after, (Progress{.runs = 7, .offloads = 1}));  // run 6 has ended
  EXPECT_EQ(plan.runs[5].after, (Progress{5, 0, 0}));
  EXPECT_EQ(plan.runs[6].after, (Progress{6, 1, 0}));
  EXPECT_EQ(plan.runs[8].after, (Progress{8, 1, 1}));
}

TEST_F(ScheduleTest, LeavesOutAFarIntervalWhoseRoomIsFreeAllTheTime) {
  schedule({far_interval(0)});
  EXPECT_TRUE(plan.offloads.empty());
  EXPECT_TRUE(plan.prefetches.empty());
  EXPECT_EQ(plan.runs[4].after, (Progress{4, 0, 0}));
}

TEST_F(ScheduleTest, TransfersAgainWhatWasWrittenInBetween) {
  schedule({far_interval(4), far_interval(8, 8)});
  EXPECT_EQ(clean(), (std::vector<bool>{false, false}));
}

TEST_F(ScheduleTest, TransfersAgainWhenOnlyAPartHasAFarCopy) {
  FarInterval part = far_interval(4);
  part.size = pages(1);
  demand[6] = pages(2 + 4);
  schedule({part, far_interval(8)});
  EXPECT_EQ(clean(), (std::vector<bool>{false, false}));
}

TEST_F(ScheduleTest, TransfersNothingWhenTwoPartsTogetherHaveAFarCopy) {
  FarInterval lower = far_interval(4);
  lower.size = pages(1);
  FarInterval upper = lower;
  upper.offset = pages(1);
  --lower.needed;  // a separate move: another run waits for it
  schedule({upper, lower, far_interval(8)});
  EXPECT_EQ(clean(), (std::vector<bool>{false, false, true}));
}

TEST_F(ScheduleTest, MovesNeighbouringPartsTogetherThatMoveUnderTheSameConditions) {
  FarInterval lower = far_interval(4);
  lower.size = pages(1);
  FarInterval upper = lower;
  upper.offset = pages(1);
  schedule({upper, lower});
  ASSERT_EQ(plan.offloads.size(), 1U);
  EXPECT_EQ(plan.offloads[0].offset, um::Bytes{});
  EXPECT_EQ(plan.offloads[0].size, pages(2));
  ASSERT_EQ(plan.prefetches.size(), 1U);
  EXPECT_EQ(plan.prefetches[0].size, pages(2));
}

TEST_F(ScheduleTest, CopiesWhileTasksReadWhereTheLinkCan) {
  add_moves(return_early(std::vector{far_interval(4)}, demand, pages(5)),
            {.copies_while_read = true}, plan);
  ASSERT_EQ(plan.offloads.size(), 1U);
  EXPECT_EQ(plan.offloads[0].after, (Progress{.runs = 1}));  // run 0 has written it
  EXPECT_EQ(plan.offloads[0].free_after, 5U);                // run 4 has read it
}

// A page of x is away until run 4, so x as a whole is copied after run 8, although no run writes
// it. The renewal of a block that run 5 has written does not wait for that.
TEST_F(ScheduleTest, LeavesBeforeWhatCannotBeCopiedYet) {
  FarInterval page = far_interval(0);
  page.size = pages(1);
  const IdleInterval idle{.data = DataId{1}, .written = 5, .last = 5, .next = 13, .to_end = false};
  FarInterval renewal{idle, {}, pages(1), 13};
  renewal.is_renewal = true;
  add_moves({{page, 4}, {far_interval(8), 12}, {renewal, 7}}, {.copies_while_read = true}, plan);
  std::vector<std::uint32_t> begins;
  for (const Move& move : plan.offloads) begins.push_back(move.after.runs);
  EXPECT_EQ(begins, (std::vector<std::uint32_t>{1, 6, 9}));
  ASSERT_EQ(plan.prefetches.size(), 3U);
  EXPECT_EQ(plan.prefetches[1].data, DataId{1});
  EXPECT_EQ(plan.prefetches[1].after, (Progress{.runs = 7, .offloads = 2}));
}

// A block that run 3 has read returns before run 6, while run 8 still reads x, which is copied from
// run 1 on.
TEST_F(ScheduleTest, LetsNoPrefetchWaitForABlockThatIsStillRead) {
  const IdleInterval idle{.data = DataId{1}, .written = 2, .last = 3, .next = 6};
  const FarInterval other{idle, {}, pages(1), 13};
  add_moves({{other, 5}, {far_interval(8), 12}}, {.copies_while_read = true}, plan);
  ASSERT_EQ(plan.offloads.size(), 2U);
  EXPECT_EQ(plan.offloads[0].data, DataId{1});
  EXPECT_EQ(plan.offloads[1].free_after, 9U);
  EXPECT_EQ(plan.prefetches[0].after, (Progress{.runs = 5, .offloads = 1}));
}

TEST_F(ScheduleTest, KnowsWhatFits) {
  const std::vector<Swap> swaps{{far_interval(4), 7}, {far_interval(8), 11}};
  EXPECT_TRUE(fits(swaps, demand, pages(5)));
  EXPECT_FALSE(fits(swaps, demand, pages(4)));  // runs 2, 6 and 10 need 5
  EXPECT_FALSE(fits(std::span{swaps}.first(1), demand, pages(5)));
  const std::vector<Swap> early{{far_interval(4), 6}, {far_interval(8), 11}};
  EXPECT_FALSE(fits(early, demand, pages(5)));
}

TEST_F(ScheduleTest, KeepsACleanFarIntervalClean) {
  schedule({far_interval(4), far_interval(8)});
  EXPECT_EQ(clean(), (std::vector<bool>{false, true}));
}

// The first far interval is left out, so the second has no far copy; it makes the one for the
// third.
TEST_F(ScheduleTest, TransfersOnceInAChainOfCleanFarIntervalsWhoseBeginningIsLeftOut) {
  schedule({far_interval(0), far_interval(4), far_interval(8)});
  EXPECT_EQ(clean(), (std::vector<bool>{false, true}));
}

using namespace std::chrono_literals;

// A pool of 4 pages holds y or x. y is made until 100 and out at 140; x is made until 240. As a
// whole, x is out at 280, y is back at 320 and used until 420, x is back at 460 and used until 560.
// Page by page y follows x from 250 on and is back at 290.
TEST(TimedSchedule, BringsPartsBackWhileOthersStillLeave) {
  const TaskGraph graph = toy_graph("y:4 x:4", "y = make y(); x = make x(); use y(y); use x(x)");
  Profile profile = flat_profile(graph, 100ns);
  profile.link.is_duplex = true;
  Problem given = problem(graph, profile, pages(4));
  given.chunk = kPage;
  const OffloadPlanner planner{given};
  const auto makespan = [&](bool in_parts) {
    LifeFinder finder{graph};
    const MoveDecisions moves{.move_order = {.in_parts = in_parts}};
    const auto evaluated = planner.plan(runs_in_order(graph), finder, moves);
    EXPECT_EQ(reason_against(graph, evaluated->plan), "");
    return evaluated->makespan;
  };
  EXPECT_EQ(makespan(false), 560ns);
  EXPECT_EQ(makespan(true), 530ns);
}

using um::Bytes;

Bytes size_of_first(const std::vector<Move>& moves, std::size_t count) {
  Bytes sum;
  for (std::size_t i = 0; i < count; ++i) sum += moves[i].size;
  return sum;
}

// Tries every possible number of started prefetches before run p.
std::uint32_t offloads_for(const Plan& plan, Position p, Bytes demand, Bytes pool) {
  std::uint32_t needed = 0;
  for (std::size_t k = plan.runs[p].after.prefetches; k <= plan.prefetches.size(); ++k) {
    std::uint32_t away = p > 0 ? plan.runs[p - 1].after.offloads : 0;
    if (k > 0 && plan.prefetches[k - 1].after.runs > p) break;
    if (k > 0) away = std::max(away, plan.prefetches[k - 1].after.offloads);
    const std::uint32_t sure = away;
    const Bytes taken = demand + size_of_first(plan.prefetches, k);
    while (taken > pool + size_of_first(plan.offloads, away)) ++away;
    if (away > sure || k == plan.runs[p].after.prefetches) needed = std::max(needed, away);
  }
  return needed;
}

void expect_fewest_conditions(const TaskGraph& graph) {
  const Profile profile = random_profile(graph);
  Problem given = random_problem(graph, profile);
  Plan plan = planned_with_more(find_planner("fractional"), given);
  const BlockSizes block_sizes{graph, given.page};
  const std::vector<Bytes> live =
      demand(graph, block_sizes, plan.runs, find_lives(graph, plan.runs));
  std::vector<std::uint32_t> landed;
  for (const TaskRun& run : plan.runs) landed.push_back(run.after.prefetches);
  const Bytes pool = block_sizes.pool(given.budget);
  add_run_conditions(live, pool, {}, landed, plan);
  for (Position p = 0; p < plan.runs.size(); ++p) {
    RC_ASSERT(plan.runs[p].after.offloads == offloads_for(plan, p, live[p], pool));
  }
}

RC_GTEST_PROP(RunConditions, AreTheFewestThatLetADagFitWhateverHasStarted, ()) {
  expect_fewest_conditions(random_graph({.has_offloadable_weights = false}));
}

RC_GTEST_PROP(RunConditions, AreTheFewestThatLetAChainFitWhateverHasStarted, ()) {
  expect_fewest_conditions(random_chain(24));
}

}  // namespace
}  // namespace spillway::prefetch
