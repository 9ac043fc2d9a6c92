#include "prefetch/schedule.h"

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
  static Absence absence(Position last, bool is_clean) {
    return {.data = DataId{0},
            .offset = {},
            .size = pages(2),
            .is_clean = is_clean,
            .last = last,
            .next = last + 4,
            .needed = last + 2};
  }
  std::vector<um::Bytes> demand = std::vector<um::Bytes>(13, pages(2));
  Plan plan;
};

TEST_F(ScheduleTest, EveryMoveWaitsForWhatItCountsOn) {
  schedule_moves({absence(4, false)}, demand, pages(5), plan);
  ASSERT_EQ(plan.offloads.size(), 1U);
  EXPECT_EQ(plan.offloads[0].after, (Progress{.runs = 5}));  // run 4 has ended
  ASSERT_EQ(plan.prefetches.size(), 1U);
  EXPECT_EQ(plan.prefetches[0].after, (Progress{.runs = 7, .offloads = 1}));  // run 6 has ended
  EXPECT_EQ(plan.runs[5].after, (Progress{5, 0, 0}));
  EXPECT_EQ(plan.runs[6].after, (Progress{6, 1, 0}));
  EXPECT_EQ(plan.runs[8].after, (Progress{8, 1, 1}));
}

TEST_F(ScheduleTest, LeavesOutAnAbsenceWhoseRoomIsFreeAllTheTime) {
  schedule_moves({absence(0, false)}, demand, pages(5), plan);
  EXPECT_TRUE(plan.offloads.empty());
  EXPECT_TRUE(plan.prefetches.empty());
  EXPECT_EQ(plan.runs[4].after, (Progress{4, 0, 0}));
}

TEST_F(ScheduleTest, KeepsACleanAbsenceClean) {
  schedule_moves({absence(4, false), absence(8, true)}, demand, pages(5), plan);
  ASSERT_EQ(plan.offloads.size(), 2U);
  EXPECT_FALSE(plan.offloads[0].is_clean);
  EXPECT_TRUE(plan.offloads[1].is_clean);
}

// The first absence is left out, so the second has no far copy to rely on; it makes the one that
// the third relies on.
TEST_F(ScheduleTest, TransfersOnceInAChainOfCleanAbsencesWhoseBeginningIsLeftOut) {
  schedule_moves({absence(0, false), absence(4, true), absence(8, true)}, demand, pages(5), plan);
  ASSERT_EQ(plan.offloads.size(), 2U);
  EXPECT_FALSE(plan.offloads[0].is_clean);
  EXPECT_TRUE(plan.offloads[1].is_clean);
}

}  // namespace
}  // namespace spillway::prefetch
