#include <string>

#include "tests/prefetch/toy_chain.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

class Vdnn : public DrawnChain {
 protected:
  void make_convolutions(std::initializer_list<std::size_t> layers) {
    for (const std::size_t layer : layers) graph.tasks[layer].kind = TaskKind::kConvolution;
  }
};

// y0 leaves after f1 and overlaps f2; f3 waits. The loss needs y3's room and cannot overlap its
// offload, since y3 returns beside the loss. Every prefetch starts with a layer's backward pass,
// and the next layer waits for it.
//
//   runs      load 0-100  f1 -200  f2 -300  f3 350-450  f4 500-600  loss 800-900
//             b4 950-1050  b3 1100-1200  b2 1250-1350  b1 1400-1500
//   offloads  y0 200-350  y1 350-500  y2 500-650  y3 650-800
//   prefetch  y3 800-950  y2 950-1100  y1 1100-1250  y0 1250-1400
TEST_F(Vdnn, AllMovesOneLayerAfterTheOther) {
  const Plan plan = plan_with("vdnn-all", 10);
  EXPECT_EQ(names(plan.offloads), "y0 y1 y2 y3");
  EXPECT_EQ(names(plan.prefetches), "y3 y2 y1 y0");
  const Timeline timeline = simulate(plan, profile);
  EXPECT_EQ(timeline.runs[3], interval(350, 450));
  EXPECT_EQ(timeline.runs[4], interval(500, 600));
  EXPECT_EQ(timeline.runs[5], interval(800, 900));
  EXPECT_EQ(timeline.offloads[0], interval(200, 350));
  EXPECT_EQ(timeline.offloads[3], interval(650, 800));
  EXPECT_EQ(timeline.prefetches[0], interval(800, 950));
  EXPECT_EQ(timeline.prefetches[3], interval(1250, 1400));
  EXPECT_EQ(timeline.makespan(), 1500ns);
}

// If the link copies while tasks read, each offload overlaps the layer that reads the block.
//
//   runs      load 0-100  f1 -200  f2 250-350  f3 400-500  f4 550-650  loss 700-800
//             b4 850-950  b3 1000-1100  b2 1150-1250  b1 1300-1400
//   offloads  y0 100-250  y1 250-400  y2 400-550  y3 550-700
//   prefetch  y3 700-850  y2 850-1000  y1 1000-1150  y0 1150-1300
TEST_F(Vdnn, AllOverlapsTheLayerItselfWhereTheLinkCopiesWhatTasksRead) {
  profile.link.copies_while_read = true;
  const Timeline timeline = simulate(plan_with("vdnn-all", 14), profile);
  EXPECT_EQ(timeline.runs[1], interval(100, 200));
  EXPECT_EQ(timeline.runs[2], interval(250, 350));
  EXPECT_EQ(timeline.runs[5], interval(700, 800));
  EXPECT_EQ(timeline.offloads[0], interval(100, 250));
  EXPECT_EQ(timeline.offloads[3], interval(550, 700));
  EXPECT_EQ(timeline.prefetches[3], interval(1150, 1300));
  EXPECT_EQ(timeline.makespan(), 1400ns);
}

// f3 reads y0, too: its offload starts with f3 instead of f1, and f4 waits.
TEST_F(Vdnn, AllOffloadsAForkWithItsLastReader) {
  profile.link.copies_while_read = true;
  graph.tasks[3].reads.push_back(DataId{0});
  const Plan plan = plan_with("vdnn-all", 14);
  EXPECT_EQ(names(plan.offloads), "y1 y0 y2 y3");
  EXPECT_EQ(plan.offloads[1].after.runs, 3U);
  EXPECT_EQ(plan.runs[3].after.offloads, 1U);
  EXPECT_EQ(plan.runs[4].after.offloads, 3U);
}

// A workspace of 6 pages beside y1 and y2 leaves no room for y0: f2 waits for its offload.
TEST_F(Vdnn, AllOverlapsNothingWhereMemoryIsShort) {
  EXPECT_EQ(plan_with("vdnn-all", 10).runs[2].after.offloads, 0U);
  graph.tasks[2].algorithms[0].workspace = pages(6);
  EXPECT_EQ(plan_with("vdnn-all", 10).runs[2].after.offloads, 1U);
}

TEST_F(Vdnn, AllTakesFastAlgorithmsForTheWholeNetworkOrForNoTask) {
  give_fast_algorithm(6, pages(4), 60ns);
  give_fast_algorithm(1, pages(4), 60ns);
  EXPECT_EQ(plan_with("vdnn-all", 14).runs[6].algorithm, 1U);
  EXPECT_EQ(plan_with("vdnn-all", 14).runs[1].algorithm, 1U);
  EXPECT_EQ(plan_with("vdnn-all", 13).runs[6].algorithm, 0U);
  EXPECT_EQ(plan_with("vdnn-all", 13).runs[1].algorithm,
            0U);  // although it would fit
}

// y1 leaves after f2, overlaps f3 and the next convolution f4, and the loss waits. y3 returns
// beside the loss. Beside b4 the search finds y1 past f3, which is not a convolution.
TEST_F(Vdnn, ConvLeavesOtherBlocksAloneAndSearchesPastOtherLayers) {
  make_convolutions({2, 4});
  const Plan plan = plan_with("vdnn-conv", 14);
  EXPECT_EQ(names(plan.offloads), "y1 y3");
  EXPECT_EQ(plan.runs[4].after.offloads, 0U);
  EXPECT_EQ(plan.runs[5].after.offloads, 2U);
  EXPECT_EQ(names(plan.prefetches), "y3 y1");
  EXPECT_EQ(plan.prefetches[0].after.runs, 5U);
  EXPECT_EQ(plan.prefetches[1].after.runs, 6U);
  EXPECT_EQ(plan.runs[7].after.prefetches, 2U);  // b3 waits, although b2 reads y1 first
}

// y2 returns beside the loss. Beside b4 the search ends at the convolution f3 before it finds y0;
// beside b3 it finds y0.
TEST_F(Vdnn, ConvDoesNotSearchPastAConvolution) {
  make_convolutions({1, 3});
  const Plan plan = plan_with("vdnn-conv", 14);
  EXPECT_EQ(names(plan.prefetches), "y2 y0");
  EXPECT_EQ(plan.prefetches[0].after.runs, 5U);
  EXPECT_EQ(plan.prefetches[1].after.runs, 7U);
}

// b4 needs most: 14 pages resident, 12 with y0 away (the inputs of f1 and f3 are offloaded, and y2
// is back), 10 with y0 and y1 away. Its fast algorithm needs 4 more.
TEST_F(Vdnn, DynTriesThePoliciesInThePublishedOrder) {
  make_convolutions({1, 3});
  give_fast_algorithm(6, pages(4), 60ns);
  struct Trial {
    std::uint64_t pool;
    std::string offloads;
    std::uint32_t algorithm;
  };
  for (const Trial& trial : {Trial{18, "", 1}, Trial{17, "y0 y2", 1}, Trial{15, "y0 y1 y2 y3", 1},
                             Trial{13, "y0 y2", 0}, Trial{11, "y0 y1 y2 y3", 0}}) {
    const Plan plan = plan_with("vdnn-dyn", trial.pool);
    EXPECT_EQ(names(plan.offloads), trial.offloads) << trial.pool;
    EXPECT_EQ(plan.runs[6].algorithm, trial.algorithm) << trial.pool;
  }
}

// Only the fast algorithm that does not fit is reverted.
TEST_F(Vdnn, DynDowngradesOnlyTheTaskThatDoesNotFit) {
  make_convolutions({1, 3});
  give_fast_algorithm(6, pages(4), 60ns);
  give_fast_algorithm(1, pages(4), 60ns);
  const Plan plan = plan_with("vdnn-dyn", 13);
  EXPECT_EQ(plan.runs[6].algorithm, 0U);
  EXPECT_EQ(plan.runs[1].algorithm, 1U);
}

}  // namespace
}  // namespace spillway::prefetch
