#include "tests/prefetch/drawn_chain.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

using IbmOocTest = DrawnChain;

// Each layer's data leaves when the layer is concluded, and the end of the next layer waits for it.
// y4, which f4 wrote and the loss reads, goes out and comes straight back: nothing is computed
// meanwhile (600-1100).
//
//   runs      load 0-100  f1 -200  f2 -300  f3 350-450  f4 500-600  loss 1100-1200
//             b4 1250-1350  b3 1400-1500  b2 1550-1650  b1 1700-1800
//   offloads  y0 200-350  y1 350-500  y2 500-650  y3 650-800  y4 800-950
//   prefetch  y4 950-1100  y3 1100-1250  y2 1250-1400  y1 1400-1550  y0 1550-1700
TEST_F(IbmOocTest, MovesEverythingAndWaitsBetweenThePasses) {
  const Plan plan = plan_with("ibm-ooc", 10);
  EXPECT_EQ(names(plan.offloads), "y0 y1 y2 y3 y4");
  EXPECT_EQ(names(plan.prefetches), "y4 y3 y2 y1 y0");
  const Timeline timeline = simulate(plan, profile);
  EXPECT_EQ(timeline.offloads[0], interval(200, 350));
  EXPECT_EQ(timeline.runs[3], interval(350, 450));
  EXPECT_EQ(timeline.runs[4], interval(500, 600));
  EXPECT_EQ(timeline.prefetches[0], interval(950, 1100));
  EXPECT_EQ(timeline.runs[5], interval(1100, 1200));
  EXPECT_EQ(timeline.runs[6], interval(1250, 1350));
  EXPECT_EQ(timeline.makespan(), 1800ns);
}

TEST_F(IbmOocTest, MovesEverythingEvenWhenEverythingFits) {
  EXPECT_EQ(plan_with("ibm-ooc", 14).offloads.size(), 5U);
}

TEST_F(IbmOocTest, SwapsOutWhenALayerIsConcludedWhateverTheLink) {
  profile.link.copies_while_read = true;
  EXPECT_EQ(plan_with("ibm-ooc", 14).offloads[0].after.runs, 2U);  // f1 has ended
}

// A workspace of 6 pages beside y1 and y2: no room for y0 during f2.
TEST_F(IbmOocTest, WaitsAtOnceWhereMemoryIsShort) {
  EXPECT_EQ(plan_with("ibm-ooc", 10).runs[2].after.offloads, 0U);
  graph.tasks[2].algorithms[0].workspace = pages(6);
  EXPECT_EQ(plan_with("ibm-ooc", 10).runs[2].after.offloads, 1U);
}

// y1, which b2 needs, comes back beside b3.
TEST_F(IbmOocTest, SwapsInOneLayerAhead) {
  const Plan plan = plan_with("ibm-ooc", 14);
  EXPECT_EQ(plan.prefetches[3].after.runs, 7U);
  EXPECT_EQ(plan.runs[8].after.prefetches, 4U);
}

}  // namespace
}  // namespace spillway::prefetch
