#include <gtest/gtest.h>

#include "tests/prefetch/planned.h"
#include "tests/prefetch/toy.h"
#include "tests/prefetch/toy_chain.h"

namespace spillway::prefetch {
namespace {

using namespace testing;

using Capacity = ToyChain;

// The peak is 14 pages, at b4. With one page less, all of y0 leaves.
TEST_F(Capacity, MovesWholeBlocksTheLongestUnusedFirst) {
  const Plan plan = plan_with("capacity", 13);
  EXPECT_EQ(names(plan.offloads), "y0");
  EXPECT_EQ(plan.offloads[0].size, pages(2));
  EXPECT_TRUE(moves_whole_blocks(plan, graph));
}

// y0 is used by f1, run 1, and b1, run 9. In a pool of 12 pages, runs up to f4 (10 pages), the loss
// (12) and runs from b3 on (12, then less) have room for it; b4 (14), run 6, has not. y0 may thus
// return as soon as b4 has ended.
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

using namespace std::chrono_literals;

// y0 has one page, y1 four, all other blocks two. The loads are 7, 9, 11, 13, 15, 13 and 11 pages
// from f2 to b2. With 13 pages, two must be away at b4: of y0, y1 or y2.
using AutoswapTest = UnevenChain;

// By WDOA (load - budget, summed over the far interval: y0 -12, y1 -4, y2 0) y2 is chosen: out
// 400-550, back 700-850; b3 waits 150 ns. AOA would choose y1, and b2 would wait for it from 800 to
// 1000; DOA would choose y0 and then y1.
TEST_F(AutoswapTest, TakesTheWeightsWithTheShortestStep) {
  const Plan plan = plan_with("autoswap", 13);
  EXPECT_EQ(names(plan.offloads), "y2");
  const Timeline timeline = simulate(plan, profile);
  EXPECT_EQ(timeline.prefetches[0], interval(700, 850));
  EXPECT_EQ(timeline.makespan(), 1150ns);
}

// A page takes 10 ns: y2 would make b3 wait 20 ns; blocks that are away longer return hidden,
// beside b3.
TEST_F(AutoswapTest, WeighsDurationsWhereTheLinkIsFast) {
  profile.link = toy_link();
  const Plan plan = plan_with("autoswap", 13);
  EXPECT_EQ(simulate(plan, profile).makespan(), 1000ns);
  for (const Move& move : plan.offloads) EXPECT_NE(graph[move.data].name, "y2");
}

TEST_F(AutoswapTest, IsDeterministic) {
  EXPECT_EQ(plan_with("autoswap", 11), plan_with("autoswap", 11));
}

// y0 has one page, y1 four, all other blocks two. With y0 to y3 away while idle, b4 has y3, y4, d4
// and d3 near, 8 pages; without moves it needs 15.
using LargestFirstTest = UnevenChain;

// 8 pages and y1 make 12; y2 would make 14 and must leave; y3 is back before b4; y0 makes 13.
TEST_F(LargestFirstTest, KeepsTheLargestThatFit) {
  EXPECT_EQ(names(plan_with("largest-first", 13).offloads), "y2");
}

TEST_F(LargestFirstTest, MovesSmallBlocksWhereTheLargestTakeTheRoom) {
  EXPECT_EQ(names(plan_with("largest-first", 12).offloads), "y0 y2");
}

// 8 pages and y1 exceed 11; with y2 and y0 instead they make 11.
TEST_F(LargestFirstTest, GoesOnWithSmallerBlocksWhereTheLargestDoesNotFit) {
  EXPECT_EQ(names(plan_with("largest-first", 11).offloads), "y1");
}

// b4 needs 15 pages; b3 with y0 to y3, d3 and d2 needs 13. y2 is thus back as soon as b4 has ended,
// which is when b3 needs it.
TEST_F(LargestFirstTest, BringsBackAsSoonAsThereIsRoom) {
  const Plan plan = plan_with("largest-first", 13);
  EXPECT_EQ(plan.prefetches[0].after.runs, 7U);
  EXPECT_EQ(plan.runs[7].after.prefetches, 1U);
  EXPECT_EQ(plan.runs[5].after.offloads, 0U);
  EXPECT_EQ(plan.runs[6].after.offloads, 1U);
}

using TflmsTest = DrawnChain;

// Only b4 exceeds 12 pages, so one tensor suffices, the first one, y0. One layer ahead of b1 it
// returns from 800 (b3 has ended) to 950, and b1 waits 50 ns. Two layers ahead it returns from 700
// to 850, without a wait. Four layers ahead it would return beside b4, which has no room.
TEST_F(TflmsTest, TakesTheBestNumberOfTensorsAndDistance) {
  const Plan plan = plan_with("tflms", 12);
  EXPECT_EQ(names(plan.offloads), "y0");
  EXPECT_EQ(plan.offloads[0].after.runs, 2U);
  EXPECT_EQ(plan.prefetches[0].after.runs, 7U);
  EXPECT_EQ(simulate(plan, profile).prefetches[0], interval(700, 850));
  EXPECT_EQ(simulate(plan, profile).makespan(), 1000ns);
}

// b4 has room for y3, y4, d4, d3 and one more. With the first two tensors away and back one layer
// ahead, y2 can stay near all the time.
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

// Blocks of one page and room for two.
//   make a            a
//   make b            a b
//   use a             a b
//   make c    b out   a c      b was used longest ago
//   use b     a out   b c      a at 2, c at 3
//   use a     c out   a b      c at 3, b at 4; a dies
//   use b, c          b c
TEST(OnDemand, SendsAwayWhatWasUsedLongestAgo) {
  const TaskGraph graph = toy_graph("a:1 b:1 c:1",
                                    "a = make a(); b = make b(); use a(a); c = make c(); "
                                    "use b(b); use a again(a); use b and c(b, c)");
  const Profile profile = flat_profile(graph, 100ns);
  Problem given = problem(graph, profile, pages(2));
  given.whole_blocks = true;
  const Plan plan = planned("on-demand", given);
  EXPECT_EQ(names(graph, plan.offloads), "b a c");
  EXPECT_EQ(names(graph, plan.prefetches), "b a c");
  EXPECT_EQ(reason_against(graph, plan), "");
}

// Room for two pages; c and d have two. a leaves for c, returns, and leaves for d: the second time
// without a transfer, unless the use in between changed it.
TEST(OnDemand, SendsAnUnchangedBlockAwayWithoutATransfer) {
  for (const bool is_changed : {false, true}) {
    const TaskGraph graph = toy_graph("a:1 c:2 d:2", std::string{"a = make a(); c = make c(); "} +
                                                         (is_changed ? "a = " : "") +
                                                         "use a(a); d = make d(); use a again(a)");
    const Profile profile = flat_profile(graph, 100ns);
    Problem given = problem(graph, profile, pages(2));
    given.whole_blocks = true;
    const Plan plan = planned("on-demand", given);
    ASSERT_EQ(plan.offloads.size(), 2U);
    EXPECT_FALSE(plan.offloads[0].is_clean);
    EXPECT_EQ(plan.offloads[1].is_clean, !is_changed);
    EXPECT_EQ(reason_against(graph, plan), "");
  }
}

using IbmOocTest = DrawnChain;

// Each layer's data leaves at the end of the layer, and the end of the next layer waits for it. y4,
// which f4 wrote and the loss reads, is swapped out and back without computation meanwhile
// (600-1100).
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

// y1, which b2 needs, returns beside b3.
TEST_F(IbmOocTest, SwapsInOneLayerAhead) {
  const Plan plan = plan_with("ibm-ooc", 14);
  EXPECT_EQ(plan.prefetches[3].after.runs, 7U);
  EXPECT_EQ(plan.runs[8].after.prefetches, 4U);
}

using Fractional = ToyChain;

Plan plan_for(const Problem& problem) { return planned("fractional", problem); }

um::Bytes moved(const std::vector<Move>& moves) {
  um::Bytes total;
  for (const Move& move : moves) total += move.size;
  return total;
}

// Two pages less than the peak: exactly two pages of the oldest block leave.
TEST_F(Fractional, MovesOnlyWhatDoesNotFitAndTheOldestFirst) {
  const Plan plan = plan_with("fractional", 12);
  EXPECT_EQ(names(plan.offloads), "y0");
  EXPECT_EQ(moved(plan.offloads), pages(2));
}

TEST_F(Fractional, MovesPartsOfBlocksUnlessToldOtherwise) {
  Problem tight = with_pool(13);
  EXPECT_EQ(moved(plan_for(tight).offloads), pages(1));
  tight.whole_blocks = true;
  EXPECT_EQ(moved(plan_for(tight).offloads), pages(2));
  EXPECT_TRUE(moves_whole_blocks(plan_for(tight), graph));
}

// Eight layers of two pages, 20 ns per page there and back, in a pool of 14 pages (peak 22). Eight
// pages must be out before b8 (after nine tasks of 100 ns; the first ends at 100 ns), which is
// possible without a stall.
TEST_F(Fractional, HidesItsMovesWhereThereIsTime) {
  graph = chain(8, pages(2));
  profile = flat_profile(graph, 100ns);
  const Plan plan = plan_with("fractional", 14);
  EXPECT_EQ(makespan(plan), compute_time(profile, plan.runs));
}

// x is used three times and away twice. Returns the second offload; with `changed`, x is written
// while it is near in between, one task before it leaves again.
Move second_offload(bool changed) {
  const TaskGraph graph =
      toy_graph("x:2 a:3", std::string{"x = make(); a = big1(); "} +
                               (changed ? "x = change(x); " : "") + "use1(x); a = big2(); use2(x)");
  const Profile profile = flat_profile(graph, 100ns);
  const Plan plan = plan_for(problem(graph, profile, pages(3)));
  EXPECT_EQ(reason_against(graph, plan), "");
  EXPECT_EQ(plan.offloads.size(), 2U);
  EXPECT_FALSE(plan.offloads.at(0).is_clean);
  return plan.offloads.at(1);
}

TEST_F(Fractional, DoesNotTransferAnUnchangedBlockOutTwice) {
  EXPECT_TRUE(second_offload(false).is_clean);
}

TEST_F(Fractional, TransfersAChangedBlockOutAgain) { EXPECT_FALSE(second_offload(true).is_clean); }

}  // namespace
}  // namespace spillway::prefetch
