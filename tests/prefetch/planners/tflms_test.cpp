#include "tests/prefetch/drawn_chain.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

using TflmsTest = DrawnChain;

// Only b4 exceeds 12 pages, so one tensor is enough, the first one, y0. One layer ahead of b1 it
// comes back from 800 (b3 has ended) to 950, and b1 waits 50 ns; two layers ahead from 700 to 850,
// and nothing waits; four layers ahead it would be back beside b4, which has no room.
TEST_F(TflmsTest, TakesTheBestNumberOfTensorsAndDistance) {
  const Plan plan = plan_with("tflms", 12);
  EXPECT_EQ(names(plan.offloads), "y0");
  EXPECT_EQ(plan.offloads[0].after.runs, 2U);
  EXPECT_EQ(plan.prefetches[0].after.runs, 7U);
  EXPECT_EQ(simulate(plan, profile).prefetches[0], interval(700, 850));
  EXPECT_EQ(simulate(plan, profile).makespan(), 1000ns);
}

// b4 has room for y3, y4, d4, d3 and one more: with the first two tensors away and back one layer
// ahead, y2 has it all the time.
//
//   runs      load 0-100  f1 -200  f2 -300  f3 -400  f4 -500  loss -600  b4 -700  b3 -800
//             b2 850-950  b1 1000-1100
//   offloads  y0 200-350  y1 350-500
//   prefetch  y1 700-850  y0 850-1000
TEST_F(TflmsTest, DelaysNoRunButForItsMemoryAndItsBlocks) {
  const Plan plan = plan_with("tflms", 10);
  EXPECT_EQ(names(plan.offloads), "y0 y1");
  const Timeline timeline = simulate(plan, profile);
  EXPECT_EQ(timeline.runs[7], interval(700, 800));
  EXPECT_EQ(timeline.prefetches[0], interval(700, 850));
  EXPECT_EQ(timeline.prefetches[1], interval(850, 1000));
  EXPECT_EQ(timeline.makespan(), 1100ns);
}

}  // namespace
}  // namespace spillway::prefetch
