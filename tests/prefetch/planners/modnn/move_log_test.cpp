#include <gtest/gtest.h>

#include "prefetch/planners/modnn/virtual_memory.h"
#include "tests/prefetch/toy.h"

namespace spillway::prefetch {
namespace {

using namespace testing;

// Blocks x and y of two pages, a pool of four, six pages live from run 1 on. y leaves for run 1.
// Before run 2, x leaves so that y can come back for run 3: run 2 fits with x near as long as y has
// not started to come, so it waits for one offload; y itself waits for both.
TEST(MoveLog, LetsARunWaitOnlyForTheRoomThatItNeeds) {
  MoveLog log;
  log.offload(DataId{1}, pages(2), 0, 0, false);
  log.offload(DataId{0}, pages(2), 1, 1, false);
  log.load(DataId{1}, pages(2), 2, 3);
  Plan plan;
  plan.runs.resize(4);
  log.add_to(plan, std::vector{pages(4), pages(6), pages(6), pages(6)}, pages(4));
  EXPECT_EQ(plan.runs[0].after, (Progress{.runs = 0}));
  EXPECT_EQ(plan.runs[1].after, (Progress{.runs = 1, .offloads = 1}));
  EXPECT_EQ(plan.runs[2].after, (Progress{.runs = 2, .offloads = 1}));
  EXPECT_EQ(plan.runs[3].after, (Progress{.runs = 3, .offloads = 2, .prefetches = 1}));
  ASSERT_EQ(plan.prefetches.size(), 1U);
  EXPECT_EQ(plan.prefetches[0].after, (Progress{.runs = 2, .offloads = 2}));
}

TEST(MoveLog, ForgetsACancelledLoad) {
  MoveLog log;
  log.offload(DataId{0}, pages(2), 0, 0, false);
  log.cancel(log.load(DataId{0}, pages(2), 1, 3));
  log.load(DataId{0}, pages(2), 3, 3);
  Plan plan;
  plan.runs.resize(4);
  log.add_to(plan, std::vector{pages(2), pages(4), pages(4), pages(2)}, pages(2));
  ASSERT_EQ(plan.prefetches.size(), 1U);
  EXPECT_EQ(plan.prefetches[0].after.runs, 3U);
}

// A copy that may start while tasks still read the block: run 0 wrote it, run 2 reads it last.
TEST(MoveLog, FreesABlockOnlyAfterItsLastReader) {
  MoveLog log;
  log.offload(DataId{0}, pages(2), 0, 2, false);
  Plan plan;
  plan.runs.resize(4);
  log.add_to(plan, std::vector{pages(2), pages(2), pages(2), pages(4)}, pages(2));
  ASSERT_EQ(plan.offloads.size(), 1U);
  EXPECT_EQ(plan.offloads[0].after.runs, 1U);
  EXPECT_EQ(plan.offloads[0].frees_after(), 3U);
  EXPECT_EQ(plan.runs[3].after.offloads, 1U);
}

}  // namespace
}  // namespace spillway::prefetch
