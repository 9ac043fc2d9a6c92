#include "prefetch/moves/schedule.h"

#include <gtest/gtest.h>

#include "tests/prefetch/toy.h"

namespace spillway::prefetch {
namespace {

using namespace testing;

// x has two pages and is used by the runs 0, 4, 8 and 12. Beside it, run 2 needs three pages, and
// the runs 6 and 10 need five each. With room for five pages x must be away for the last two.
class ScheduleTest : public ::testing::Test {
 protected:
  ScheduleTest() {
    demand[2] = pages(2 + 3);
    demand[6] = demand[10] = pages(2 + 5);
    plan.runs.resize(13);
  }
  // x is away between its uses `last` and `last` + 4, and run `last` + 2 counts on that.
  static FarInterval far_interval(Position last, Position written = 0) {
    const IdleInterval idle{.written = written, .last = last, .next = last + 4};
    return {idle, {}, pages(2), last + 2};
  }
  void schedule(const std::vector<FarInterval>& far_intervals) {
    add_moves(return_early(far_intervals, demand, pages(5)), {}, plan);
  }
  // Of each offload: whether it transfers nothing.
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
  --lower.needed;  // two moves: another run waits for it
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

// A page of x is away until run 4, so that x as a whole is copied when run 8 has ended, although
// nothing writes it. What leaves for no run's sake, once run 5 has written it, does not wait for
// that.
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

// The first far interval is left out, so the second has no far copy to rely on; it makes the one
// that the third relies on.
TEST_F(ScheduleTest, TransfersOnceInAChainOfCleanFarIntervalsWhoseBeginningIsLeftOut) {
  schedule({far_interval(0), far_interval(4), far_interval(8)});
  EXPECT_EQ(clean(), (std::vector<bool>{false, true}));
}

}  // namespace
}  // namespace spillway::prefetch
