#include "prefetch/bounds/paleo.h"

#include "prefetch/moves/offload_plan.h"
#include "prefetch/planners/catalogue.h"
#include "prefetch/simulate/simulate.h"
#include "tests/prefetch/toy_chain.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

// The layers f1, f2 and f3 save two pages each (150 ns each way), f4 saves four (y3 and y4).
// Unsaved blocks take at most four pages (b4: d4 and d3).
class PaleoTest : public DrawnChain {
 protected:
  [[nodiscard]] PaleoStep step(PaleoStrategy strategy, std::uint64_t pool) const {
    const Plan plan = empty_plan(with_pool(pool), runs_in_order(graph));
    return paleo_step(graph, profile, plan, strategy);
  }
  void set_rate(double factor) {
    const um::Bandwidth rate{factor * static_cast<double>(kPage.count()) / 75e-9};
    profile.link = {.offload = rate, .prefetch = rate};
  }
};

// Forward: load 100, f1 100, then f2, f3 and f4, each with 150 ns for the previous layer. Between
// the passes f4's four pages go out: 300. Backward: the loss with f4's four pages 300; b4, b3 and
// b2 with two pages each 150; b1 100. 100 + 100 + 3 * 150 + 300 + 300 + 3 * 150 + 100.
TEST_F(PaleoTest, VdnnLikeIsTheSumOfItsSections) {
  const PaleoStep paleo = step(PaleoStrategy::kVdnnLike, 10);
  EXPECT_EQ(paleo.makespan, 1800ns);
  EXPECT_EQ(paleo.compute, 1000ns);
  EXPECT_DOUBLE_EQ(paleo.utilization(), 1000.0 / 1800.0);
}

TEST_F(PaleoTest, VdnnLikeIsWhatTheSimulatorSaysOfIbmOoc) {
  const Plan plan = plan_with("ibm-ooc", 10);
  EXPECT_EQ(step(PaleoStrategy::kVdnnLike, 10).makespan, simulate(plan, profile).makespan());
}

// Capacity 8 pages: f2, f3 and f4 stay. f1's two pages are swapped out beside f2. They are swapped
// in once b4 has made room, beside b3 and b2 (1.33 pages in 100 ns).
TEST_F(PaleoTest, CapacityBasedHidesWhatThereIsTimeFor) {
  const PaleoStep paleo = step(PaleoStrategy::kCapacityBased, 12);
  EXPECT_EQ(paleo.makespan, 1000ns);
  EXPECT_FALSE(paleo.catch_up);
}

// Capacity 4 pages: only f4 stays. f3 waits until f1's pages are out, at 350; f4 until f3's are, at
// 650; the forward pass takes 750. Backward, no swap-in fits beside the loss and b4. Then b3 waits
// 150 for two pages, and b2 and b1 wait 50 for 0.67 each: 200 + 250 + 150 + 150.
TEST_F(PaleoTest, CapacityBasedWaitsAfterItHasCaughtUp) {
  const PaleoStep paleo = step(PaleoStrategy::kCapacityBased, 8);
  EXPECT_EQ(paleo.makespan, 1500ns);
  ASSERT_TRUE(paleo.catch_up);
  EXPECT_EQ(*paleo.catch_up, 200ns);
}

TEST_F(PaleoTest, CapacityBasedNeverWaitsWhereAllFits) {
  EXPECT_EQ(step(PaleoStrategy::kCapacityBased, 14).makespan, 1000ns);
}

// Recomputations in a plan are ignored.
TEST_F(PaleoTest, LeavesRecomputationsOut) {
  Plan plan = empty_plan(with_pool(8), runs_in_order(graph));
  plan.runs.insert(plan.runs.begin() + 6, {.task = TaskId{1}, .is_recomputation = true});
  EXPECT_EQ(paleo_step(graph, profile, plan, PaleoStrategy::kCapacityBased).makespan, 1500ns);
}

TEST_F(PaleoTest, KnowsWhichPlannersMoveLayerByLayer) {
  EXPECT_EQ(to_string(paleo_strategy("vdnn-conv")), "vdnn-like");
  EXPECT_EQ(to_string(paleo_strategy("ibm-ooc")), "vdnn-like");
  EXPECT_EQ(to_string(paleo_strategy("capacity")), "capacity-based");
}

// As in Figure 8: the step never gets longer as throughput grows, and approaches its compute time.
TEST_F(PaleoTest, ApproachesComputeTimeAsThroughputGrows) {
  for (const auto strategy : {PaleoStrategy::kVdnnLike, PaleoStrategy::kCapacityBased}) {
    um::Nanoseconds previous = um::Nanoseconds::max();
    for (double factor = 0.125; factor < 1e4; factor *= 2) {
      set_rate(factor);
      const um::Nanoseconds now = step(strategy, 8).makespan;
      EXPECT_LE(now, previous) << factor;
      previous = now;
    }
    EXPECT_LT(previous, 1001ns);
  }
}

// A page takes 10 ns, so all swaps are hidden except f4's swap-out, 40 ns, between the passes.
// Latency is added to each of the nine swaps: 5 ns are hidden, 100 ns beside 20 or 40 ns are not.
TEST_F(PaleoTest, CountsLatencyOnceALayer) {
  profile.link = toy_link();
  EXPECT_EQ(step(PaleoStrategy::kVdnnLike, 10).makespan, 1040ns);
  profile.link.latency = 5ns;
  EXPECT_EQ(step(PaleoStrategy::kVdnnLike, 10).makespan, 1045ns);
  // f2, f3, f4: 120 each; between 140; loss 140; b4, b3, b2: 120 each; load, f1, b1: 100 each.
  profile.link.latency = 100ns;
  EXPECT_EQ(step(PaleoStrategy::kVdnnLike, 10).makespan, 1300ns);
}

}  // namespace
}  // namespace spillway::prefetch
