#include "tests/prefetch/drawn_chain.h"
#include "tests/prefetch/toy_graph.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

using Fractional = ToyChain;

Plan plan_for(const Problem& problem) { return planned("fractional", problem); }

um::Bytes moved(const std::vector<Move>& moves) {
  um::Bytes total;
  for (const Move& move : moves) total += move.size;
  return total;
}

// Two pages less than the peak mean that exactly two pages of the oldest block leave.
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

// Eight layers of two pages, 20 ns a page there and back, at a pool of 14 pages (peak 22): eight
// pages must be out before b8 (after nine tasks of 100 ns, the first of which ends at 100 ns) and
// there is time for that: no stall.
TEST_F(Fractional, HidesItsMovesWhereThereIsTime) {
  graph = chain(8, pages(2));
  profile = flat_profile(graph, 100ns);
  const Plan plan = plan_with("fractional", 14);
  EXPECT_EQ(makespan(plan), compute_time(profile, plan.runs));
}

// x is used three times and away twice. Returns the second offload; when x is `changed` it is
// written while it is back, one task before it leaves again.
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
