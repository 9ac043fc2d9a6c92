#include <algorithm>

#include "tests/prefetch/drawn_chain.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

using Greedy = ToyChain;

TEST_F(Greedy, OffloadsTheFirstActivationsAndBringsThemBackInReverse) {
  const auto moved = [&](std::uint64_t pool) {
    const Plan plan = plan_with("greedy", pool);
    return names(plan.offloads) + ", " + names(plan.prefetches);
  };
  // Smallest k with 2 k >= 14 - M.
  EXPECT_EQ(moved(13), "y0, y0");
  EXPECT_EQ(moved(12), "y0, y0");
  EXPECT_EQ(moved(11), "y0 y1, y1 y0");
  EXPECT_EQ(moved(8), "y0 y1 y2, y2 y1 y0");
}

// y0 is read by f1 and again by f4, so it cannot be away at the peak of the forward pass, f4 with
// y0, y3, y4 and y1, y2: k is raised to 2 although y0 alone is 2 pages. A pool of 12 suffices for
// the backward pass with one block away.
TEST_F(Greedy, RaisesKWhereAnEarlyBlockIsInUseAtThePeak) {
  graph.tasks[4].reads.push_back(graph.tasks[0].writes[0]);  // f4 reads y0
  graph.tasks[4].algorithms = {{.workspace = pages(4)}};     // so that f4 is the peak: 14
  profile.graph = fingerprint(graph);
  const Plan plan = plan_with("greedy", 12);
  EXPECT_EQ(std::ranges::count(plan.offloads, DataId{1}, &Move::data), 1);
}

// Pool 12: y0 leaves while f2 runs and is back for b1. One page takes 10 ns, nothing waits.
TEST_F(Greedy, HidesTheMovesBehindTheTasks) {
  EXPECT_EQ(makespan(plan_with("greedy", 12)), 1000ns);
}

}  // namespace
}  // namespace spillway::prefetch
