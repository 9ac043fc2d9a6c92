// Updates on the far side, from the graph to the simulated step.
#include "prefetch/far_update.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "prefetch/bounds/bounds.h"
#include "prefetch/simulate/simulate.h"
#include "prefetch/state_home.h"
#include "tests/prefetch/planned.h"
#include "tests/prefetch/random_graph.h"
#include "tests/prefetch/random_profile.h"
#include "tests/prefetch/toy.h"
#include "tests/prefetch/trace_checker.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

// The weight w and its moment m, two pages each, and the gradient g.
TaskGraph near_graph() {
  TaskGraph graph =
      toy_graph("w:2 m:2 t:1 g:2", "t = use(w); g = back(t, w); w, m = update(w, m, g)");
  graph.tasks.back().phase = Phase::kUpdate;
  for (const char* name : {"w", "m"}) make_offloadable(graph, find_block(graph, name));
  return graph;
}

TaskGraph far_graph() {
  const TaskGraph graph = near_graph();
  return with_far_updates(graph, far_updatable(graph, kPage));
}

class OneFarUpdate : public ::testing::Test {
 protected:
  OneFarUpdate() {
    profile.far_updates = {50ns};
    plan.prefetches = {{.data = w, .size = pages(2)}};
    plan.offloads = {{.data = w, .size = pages(2), .is_clean = true, .after = {.runs = 2}},
                     {.data = g, .size = pages(2), .after = {.runs = 2}}};
    plan.runs[0].after.prefetches = 1;
    plan.runs[1].after.prefetches = 1;
    plan.far_runs = {{.update = 0, .after = {.offloads = 2, .prefetches = 1}}};
  }
  TaskGraph graph = far_graph();
  DataId w = find_block(graph, "w");
  DataId m = find_block(graph, "m");
  DataId g = find_block(graph, "g");
  Profile profile = flat_profile(graph, 100ns);
  Plan plan = plain_plan_with_pool(graph, pages(5));
};

TEST_F(OneFarUpdate, IsNoTaskAnyMore) {
  EXPECT_EQ(graph.tasks.size(), 2U);
  ASSERT_EQ(graph.far_updates.size(), 1U);
  EXPECT_EQ(graph.far_updates[0].name, "update");
  EXPECT_EQ(graph.far_updates[0].gradient, g);
  EXPECT_EQ(graph.far_updates[0].parameters, w);
  EXPECT_EQ(graph.far_updates[0].numbers, std::vector{m});
  EXPECT_TRUE(graph[g].is_sent);
  EXPECT_NE(fingerprint(graph), fingerprint(near_graph()));
  // The update reads w, m and g, and writes w and m.
  EXPECT_EQ(far_traffic(graph, graph.far_updates[0]), pages(10));
}

// Prefetch 20 ns, use and back 100 each, g out 20, and 50 on the far side.
TEST_F(OneFarUpdate, RunsWhenTheGradientHasLeft) {
  EXPECT_EQ(reason_against(graph, plan), "");
  const Timeline timeline = simulate(plan, profile);
  EXPECT_EQ(check_trace(graph, plan, timeline, profile.link), "");
  EXPECT_EQ(timeline.far_runs, (std::vector<Interval>{{.begin = 240ns, .end = 290ns}}));
  EXPECT_EQ(timeline.makespan(), 290ns);
}

// "last" reads w while it leaves, after the gradient has left.
TEST(AFarUpdate, WaitsForTasksThatReadItsParametersAsTheyLeave) {
  TaskGraph near = toy_graph("w:2 m:2 t:1 g:2 d:1",
                             "t = use(w); g = back(t); d = last(t, w); w, m = update(w, m, g)");
  near.tasks.back().phase = Phase::kUpdate;
  for (const char* name : {"w", "m"}) make_offloadable(near, find_block(near, name));
  const TaskGraph graph = with_far_updates(near, far_updatable(near, kPage));
  const DataId w = find_block(graph, "w");
  Plan plan = plain_plan_with_pool(graph, pages(6));
  plan.prefetches = {{.data = w, .size = pages(2)}};
  plan.offloads = {
      {.data = w, .size = pages(2), .is_clean = true, .after = {.runs = 1}, .free_after = 3},
      {.data = find_block(graph, "g"), .size = pages(2), .after = {.runs = 2}}};
  for (TaskRun& run : plan.runs) run.after.prefetches = 1;
  plan.far_runs = {{.update = 0, .after = {.offloads = 2, .prefetches = 1}}};
  EXPECT_EQ(reason_against(graph, plan), "update does not wait for what it uses to be far");
  plan.far_runs = earliest_far_runs(graph, plan);
  EXPECT_EQ(plan.far_runs[0].after, (Progress{.runs = 3, .offloads = 2, .prefetches = 1}));
  EXPECT_EQ(reason_against(graph, plan), "");
}

// The optimizer state is never near: w, t and g are.
TEST_F(OneFarUpdate, TakesNoNearMemory) {
  const BlockSizes block_sizes{graph, kPage};
  EXPECT_EQ(near_need(graph, block_sizes).smallest, block_sizes.pinned() + pages(5));
  const BlockSizes sizes_near{near_graph(), kPage};
  EXPECT_EQ(near_need(near_graph(), sizes_near).smallest, sizes_near.pinned() + pages(6));
  plan.budget -= pages(1);
  EXPECT_NE(reason_against(graph, plan), "");
}

TEST_F(OneFarUpdate, SlowsTasksWhereTheyShareAProcessor) {
  graph = toy_graph("w:2 m:2 t:1 g:2 x:1",
                    "t = use(w); g = back(t, w); w, m = update(w, m, g); x = other()");
  graph.tasks[2].phase = Phase::kUpdate;
  for (const char* name : {"w", "m"}) make_offloadable(graph, find_block(graph, name));
  graph = with_far_updates(graph, far_updatable(graph, kPage));
  ASSERT_EQ(graph.tasks.size(), 3U);
  profile = flat_profile(graph, 100ns);
  profile.far_updates = {50ns};
  profile.link.compute_speed_while_updating = 0.5;
  plan.graph = fingerprint(graph);
  plan.runs.push_back({.task = TaskId{2}, .after = {.runs = 2, .prefetches = 1}});
  // "other" runs from 220 on; it gets 25 of the 50 ns from 240 on.
  EXPECT_EQ(simulate(plan, profile).runs.back().end, 345ns);
}

TEST_F(OneFarUpdate, MustRunOnce) {
  plan.far_runs.push_back(plan.far_runs.front());
  EXPECT_EQ(reason_against(graph, plan), "update runs twice");
  plan.far_runs.clear();
  EXPECT_EQ(reason_against(graph, plan), "update never runs");
  plan.far_runs = {{.update = 1}};
  EXPECT_EQ(reason_against(graph, plan), "a far run names an update that is not there");
}

TEST_F(OneFarUpdate, MustWaitForWhatItUses) {
  for (const Progress after : {Progress{.offloads = 1, .prefetches = 1}, Progress{.offloads = 2}}) {
    plan.far_runs[0].after = after;
    EXPECT_EQ(reason_against(graph, plan), "update does not wait for what it uses to be far");
  }
  plan.far_runs[0].after = {.runs = 3, .offloads = 2, .prefetches = 1};
  EXPECT_EQ(reason_against(graph, plan), "update waits for ever");
}

TEST_F(OneFarUpdate, TheTraceCheckerSeesOneThatDoesNotWait) {
  Timeline timeline = simulate(plan, profile);
  timeline.far_runs[0].begin = 230ns;
  EXPECT_NE(check_trace(graph, plan, timeline, profile.link), "");
}

TEST_F(OneFarUpdate, MustHaveItsGradientFar) {
  plan.offloads.pop_back();
  plan.far_runs[0].after.offloads = 1;
  EXPECT_EQ(reason_against(graph, plan), "g does not end the step where it began");
}

TEST_F(OneFarUpdate, MustHaveItsParametersFar) {
  plan.prefetches.clear();
  plan.offloads.erase(plan.offloads.begin());
  for (TaskRun& run : plan.runs) run.after.prefetches = 0;
  plan.far_runs[0].after = {.offloads = 1};
  EXPECT_EQ(reason_against(graph, plan), "w is not far when update is to use it there");
}

TEST(FarUpdatable, IsWhatNobodyNeedsNearAfterwards) {
  const auto updatable = [](const std::string& calls, std::size_t update) {
    TaskGraph graph = toy_graph("w:2 m:2 t:1 g:2", calls);
    graph.tasks[update].phase = Phase::kUpdate;
    for (const char* name : {"w", "m"}) make_offloadable(graph, find_block(graph, name));
    return far_updatable(graph, kPage).size();
  };
  EXPECT_EQ(updatable("t = use(w); g = back(t, w); w, m = update(w, m, g)", 2), 1U);
  EXPECT_EQ(updatable("t = use(w); g = back(t); w, m = update(w, m, g); t = use(w)", 2), 0U);
  EXPECT_EQ(updatable("t = use(w); g = back(t); w, m = update(w, m, g); t = use(g)", 2), 0U);
  EXPECT_EQ(updatable("w = make(w); g = back(w); w, m = update(w, m, g)", 2), 0U);
  EXPECT_EQ(updatable("t = use(w, m); g = back(t); w, m = update(w, m, g)", 2), 0U);
  const TaskGraph graph = near_graph();
  EXPECT_EQ(far_updatable(graph, 16 * pages(2)).size(), 0U);  // too small to move
}

RC_GTEST_PROP(FarUpdates, ArePlannedSoundlyByThePlannersThatKnowThem, ()) {
  const TaskGraph near = random_layers();
  std::vector<TaskId> updates = far_updatable(near, kPage);
  RC_ASSERT(!updates.empty());
  const TaskGraph graph = with_far_updates(near, updates);
  Profile profile = random_profile(graph);
  profile.link.far_update = um::Bandwidth{1e6 * *rc::gen::inRange(100, 100000)};
  profile.link.compute_speed_while_updating = 0.1 * *rc::gen::inRange(1, 11);
  profile.far_updates = far_update_times(graph, profile.link);
  const Problem given = random_problem(graph, profile);
  const Bounds bounds = lower_bounds(given);
  for (const char* name : {"capacity", "fractional", "joint"}) {
    const auto result = find_planner(name).plan(given);
    RC_ASSERT(std::holds_alternative<Plan>(result));  // these work from the smallest budget on
    const auto& plan = std::get<Plan>(result);
    const std::string broken = reason_against(graph, plan);
    if (!broken.empty()) RC_FAIL(std::string{name} + ": " + broken);
    const um::Nanoseconds bound =
        plan.planner == "joint" ? bounds.any_order : bounds.mixed_transition;
    RC_ASSERT(simulate(plan, profile).makespan() + 2ns >= bound);
    const SimulateOptions noise{.noise = 0.9, .seed = *rc::gen::arbitrary<std::uint64_t>()};
    const std::string wrong =
        check_trace(graph, plan, simulate(plan, profile, noise), profile.link);
    if (!wrong.empty()) RC_FAIL(std::string{name} + ": " + wrong);
  }
}

}  // namespace
}  // namespace spillway::prefetch
