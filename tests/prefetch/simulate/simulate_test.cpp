#include "prefetch/simulate/simulate.h"

#include <gtest/gtest.h>

#include "tests/prefetch/toy_graph.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

// Three tasks of 100 ns; b0 is offloaded after task 0 and comes back for task 2.
class ThreeTasks : public ::testing::Test {
 protected:
  ThreeTasks() {
    const DataId b0{0};
    profile = flat_profile(graph, 100ns);
    plan.runs = runs_in_order(graph);
    plan.offloads = {{.data = b0, .size = pages(5), .after = {.runs = 1}}};
    plan.prefetches = {{.data = b0, .size = pages(5), .after = {.runs = 1, .offloads = 1}}};
    plan.runs[2].after = {.prefetches = 1};
  }
  TaskGraph graph = toy_graph("b0:5 b1:1", "b0 = t0(); b1 = t1(); t2(b0, b1)");
  Profile profile;
  Plan plan;
};

// compute |t0 100|t1 100|t2 100|
// link           |o 50|p 50|
TEST_F(ThreeTasks, HideBothMovesBehindATask) {
  const Timeline timeline = simulate(plan, profile);
  EXPECT_EQ(timeline.makespan(), 300ns);
  EXPECT_EQ(timeline.offloads[0], (Interval{100ns, 150ns}));
  EXPECT_EQ(timeline.prefetches[0], (Interval{150ns, 200ns}));
}

// compute |t0 100|t1 100|          |t2 100|
// link           |o 50|  |p 50 after t1|
TEST_F(ThreeTasks, WaitForAPrefetchThatMayOnlyStartLate) {
  plan.prefetches[0].after.runs = 2;
  EXPECT_EQ(simulate(plan, profile).makespan(), 350ns);
}

TEST_F(ThreeTasks, PayLatencyOncePerMove) {
  profile.link.latency = 30ns;
  EXPECT_EQ(simulate(plan, profile).makespan(), 360ns);  // 50 + 30 + 50 + 30 behind a task of 100
}

TEST_F(ThreeTasks, TransferNothingForACleanOffload) {
  plan.offloads[0].is_clean = true;
  EXPECT_EQ(simulate(plan, profile).prefetches[0], (Interval{100ns, 150ns}));
}

// Half speed while a move is under way: t1 does 50 ns of work in the first 100 ns and ends 50 ns
// later. compute |t0 100|t1 150     |t2 100| link           |o 50|p 50|
TEST_F(ThreeTasks, SlowDownWhereCopiesTakeProcessorTime) {
  profile.link.compute_speed_while_moving = 0.5;
  EXPECT_EQ(simulate(plan, profile).makespan(), 350ns);
}

// compute |t0 100|t1 100|    |t2 100|
// link           |o1 50|o2 50|p 50|       one engine for both directions
TEST_F(ThreeTasks, QueueBothDirectionsOnOneEngine) {
  profile.link.is_duplex = false;
  plan.offloads.push_back({.data = DataId{1}, .size = pages(5), .after = {.runs = 1}});
  EXPECT_EQ(simulate(plan, profile).makespan(), 350ns);
}

// b0 may be read until t1 has ended, so a link that unmaps what leaves offloads it then; one that
// copies does so beside t1: compute |t0 100|t1 100|t2 100|
//                           link           |o 50|
TEST_F(ThreeTasks, OffloadBesideTheLastReaderWhereTheLinkCopies) {
  plan.offloads[0].free_after = 2;
  plan.prefetches.clear();
  plan.runs[2].after = {.runs = 2};
  profile.link.copies_while_read = true;
  EXPECT_EQ(simulate(plan, profile).offloads[0], (Interval{100ns, 150ns}));
  profile.link.copies_while_read = false;
  EXPECT_EQ(simulate(plan, profile).offloads[0], (Interval{200ns, 250ns}));
}

TEST_F(ThreeTasks, VaryWithNoiseAndRepeatWithItsSeed) {
  const SimulateOptions noisy{.noise = 0.1, .seed = 3};
  const Timeline first = simulate(plan, profile, noisy);
  EXPECT_NE(first.makespan(), 300ns);
  EXPECT_EQ(first.makespan(), simulate(plan, profile, noisy).makespan());
  EXPECT_LE(first.makespan(), 330ns);
  EXPECT_GE(first.makespan(), 270ns);
}

}  // namespace
}  // namespace spillway::prefetch
