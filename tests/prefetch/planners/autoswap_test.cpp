#include "tests/prefetch/drawn_chain.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

// y0 has one page, y1 four, all other blocks two. The loads are 7, 9, 11, 13, 15, 13 and 11 pages
// from f2 to b2, so with 13 pages two must be away at b4, where y0, y1 and y2 can be.
using AutoswapTest = UnevenChain;

// By WDOA (load - budget, summed over the far interval: y0 -12, y1 -4, y2 0) y2 is chosen: out
// 400-550, back 700-850, b3 waits 150 ns. By AOA y1 would be, and b2 would wait for it from 800 to
// 1000; by DOA y0 and then y1.
TEST_F(AutoswapTest, TakesTheWeightsWithTheShortestStep) {
  const Plan plan = plan_with("autoswap", 13);
  EXPECT_EQ(names(plan.offloads), "y2");
  const Timeline timeline = simulate(plan, profile);
  EXPECT_EQ(timeline.prefetches[0], interval(700, 850));
  EXPECT_EQ(timeline.makespan(), 1150ns);
}

// A page in 10 ns: y2 would make b3 wait 20 ns; what is away longer comes back beside b3, unseen.
TEST_F(AutoswapTest, WeighsDurationsWhereTheLinkIsFast) {
  profile.link = toy_link();
  const Plan plan = plan_with("autoswap", 13);
  EXPECT_EQ(simulate(plan, profile).makespan(), 1000ns);
  for (const Move& move : plan.offloads) EXPECT_NE(graph[move.data].name, "y2");
}

TEST_F(AutoswapTest, IsDeterministic) {
  EXPECT_EQ(plan_with("autoswap", 11), plan_with("autoswap", 11));
}

}  // namespace
}  // namespace spillway::prefetch
