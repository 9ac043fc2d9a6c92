#include "prefetch/bounds/bounds.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <optional>

#include "prefetch/moves/offload_plan.h"
#include "prefetch/moves/recomputation.h"
#include "prefetch/simulate/simulate.h"
#include "prefetch/verify/dataflow.h"
#include "tests/prefetch/planned.h"
#include "tests/prefetch/random_graph.h"
#include "tests/prefetch/random_profile.h"
#include "tests/prefetch/random_reruns.h"
#include "tests/prefetch/toy.h"
#include "tests/prefetch/toy_graph.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

// A link that moves one page in 100 ns each way, and tasks of 100 ns.
Profile slow_link(const TaskGraph& graph) {
  Profile profile = flat_profile(graph, 100ns);
  const um::Bandwidth rate{static_cast<double>(kPage.count()) / 100e-9};
  profile.link = {.offload = rate, .prefetch = rate};
  return profile;
}

TEST(LowerBounds, AreTheTasksAloneWhereEverythingFits) {
  const TaskGraph graph = chain(4, pages(2));
  const Profile profile = flat_profile(graph, 100ns);
  const Bounds bounds = lower_bounds(problem(graph, profile, pages(14)));
  // Ten tasks: load, four forward, loss, four backward.
  EXPECT_NEAR(static_cast<double>(bounds.beaumont.count()), 1000, 1);
  EXPECT_EQ(bounds.offload, bounds.beaumont);
  EXPECT_EQ(bounds.mixed, bounds.beaumont);
}

// Tasks: load 0, f1 1, f2 2, f3 3, f4 4, loss 5, b4 6, b3 7, b2 8, b1 9. With y and d of 2 pages,
// near while nothing is away: b4 has y0..y4, d4, d3 = 14 pages. Pool 8: 6 pages are missing at b4,
// which reads y3, y4, d4: y0, y1, y2 must be away. One page takes 100 ns.
// Beaumont: 6 * 200 = 1200 > 1000.
// Head of b4: y0 is written at 100, so it leaves from 100 to 300, y1 till 500, y2 till 700: 700,
// more than the 600 of the tasks before. Tail: y2 is due before b3 (task 7) with 300 of tasks left,
// y1 before b2 with 200, y0... is read by b1 with 100 left. Backwards in time: y0 from 100 to 300,
// y1 till 500, y2 till 700. Sum: 700 + 100 + 700 = 1500.
TEST(LowerBounds, CountHeadAndTailOfTheTightestTask) {
  const TaskGraph graph = chain(4, pages(2));
  const Profile profile = slow_link(graph);
  const Bounds bounds = lower_bounds(problem(graph, profile, pages(8)));
  EXPECT_NEAR(static_cast<double>(bounds.beaumont.count()), 1200, 1);
  EXPECT_NEAR(static_cast<double>(bounds.offload.count()), 1500, 1);
  EXPECT_EQ(bounds.mixed, bounds.offload);
}

// The same, if all y may be recomputed at 100 ns per two pages. At b4, where 6 pages are missing,
// moving m of them takes
//   max(600, head(m)) + 100 + max(300 + 50 (6 - m), tail(m))
// with head(m) = tail(m) = 100 + 100 m. The second maximum falls until the tail overtakes it, at
// 100 + 100 m = 600 - 50 m: m = 10/3, 433.33, and head(m) is below 600. Sum: 600 + 100 + 433.33. At
// b3 (4 missing, 700 before, 200 after) it is 1100 and at b2 (2 missing, 800, 100) 1066.67.
TEST(LowerBounds, DivideBetweenMovingAndComputingAgain) {
  TaskGraph graph = chain(4, pages(2));
  graph.tasks[0].is_recomputable = true;
  const Profile profile = slow_link(graph);
  Problem given = problem(graph, profile, pages(8));
  given.may_recompute = true;
  const Bounds bounds = lower_bounds(given);
  EXPECT_NEAR(static_cast<double>(bounds.offload.count()), 1500, 1);
  EXPECT_NEAR(static_cast<double>(bounds.mixed.count()), 1133.33, 1);
}

// chain(4, pages(2)) with two forward tasks per layer: f writes z, g makes y from it. In place: f
// writes y and g updates it.
TaskGraph chain_in_two_tasks(bool in_place) {
  TaskGraph graph = chain(4, pages(2));
  graph.tasks[0].is_recomputable = true;
  std::vector<Task> tasks;
  for (Task& task : graph.tasks) {
    const bool is_layer = task.phase == Phase::kForward && task.name != "load";
    tasks.push_back(task);
    if (!is_layer) continue;
    if (!in_place) {
      tasks.back().writes = {graph.add(DataBlock{.name = task.name + ".z", .size = pages(2)})};
    }
    tasks.push_back({.name = task.name + ".g",
                     .reads = tasks.back().writes,
                     .writes = task.writes,
                     .is_recomputable = true});
  }
  graph.tasks = std::move(tasks);
  return graph;
}

// Recomputing y1 or y2 runs both tasks: 100 ns a page instead of 50, except y0, which load makes.
// At b4, where 6 pages are missing, moving m of them takes
//   1000 + 100 + max(300 + again(6 - m), 100 + 100 m),
//   again(r) = 50 r up to 2 pages, then 100 r - 100,
// with the minimum 1550 at m = 3.5. At b3, b2 and the loss it is less.
TEST(LowerBounds, CountAllTasksThatMakeABlockAndWhatTheyNeed) {
  for (const bool in_place : {false, true}) {
    const TaskGraph graph = chain_in_two_tasks(in_place);
    const Profile profile = slow_link(graph);
    Problem given = problem(graph, profile, pages(8));
    given.may_recompute = true;
    EXPECT_NEAR(static_cast<double>(lower_bounds(given).mixed.count()), 1550, 1) << in_place;
  }
}

TEST(LowerBounds, TakeTheFastestAlgorithmAndTheSmallestWorkspace) {
  TaskGraph graph = chain(4, pages(2));
  graph.tasks[3].algorithms = {{.name = "slow"}, {.name = "fast", .workspace = pages(6)}};
  Profile profile = flat_profile(graph, 100ns);
  profile.durations[3] = {100ns, 60ns};
  const Bounds bounds = lower_bounds(problem(graph, profile, pages(14)));
  EXPECT_NEAR(static_cast<double>(bounds.offload.count()), 960, 1);
}

// Each fill takes the whole pool of 4 pages, so a and b, 2 pages each, are away meanwhile. They
// have left at 300 and at 500; the first fill ends at 600. After each fill 4 pages return in 400,
// and b is used for 100: 600 + 500 + 100 + 500.
TEST(LowerBounds, CountAllThatComesInAfterATaskThatFillsNearMemory) {
  const TaskGraph graph =
      toy_graph("a:2 b:2 c:4 d:4",
                "a = make a(); b = make b(); c = fill c(); use a(a); use b(b); d = fill d(); "
                "use a again(a); use b again(b)");
  const Bounds bounds = lower_bounds(problem(graph, slow_link(graph), pages(4)));
  EXPECT_NEAR(static_cast<double>(bounds.offload_transition.count()), 1700, 1);
}

// No plan of any planner is faster than its bound, and the bounds are in order.
RC_GTEST_PROP(LowerBounds, AreNeverAboveAPlan, ()) {
  const TaskGraph graph = random_graph();
  const Profile profile = random_profile(graph);
  Problem given = random_problem(graph, profile);
  for (const bool may_recompute : {false, true}) {
    given.may_recompute = may_recompute;
    const Bounds bounds = lower_bounds(given);
    RC_ASSERT(bounds.beaumont <= bounds.offload);
    RC_ASSERT(bounds.mixed <= bounds.offload);
    RC_ASSERT(bounds.offload <= bounds.offload_transition);
    RC_ASSERT(bounds.mixed <= bounds.mixed_transition);
    RC_ASSERT(bounds.mixed.count() > 0);
    for (const char* name : {"fractional", "joint"}) {
      const Plan plan = planned(name, given);
      const um::Nanoseconds makespan = simulate(plan, profile).makespan();
      RC_ASSERT((may_recompute ? bounds.mixed_transition : bounds.offload_transition) <= makespan);
    }
  }
}

// Drops some tensors of the forward pass, each with a random reuse, whether or not
// find_recomputable() accepts them.
std::vector<TaskRun> runs_that_drop_some(const TaskGraph& graph) {
  const int one_in = *rc::gen::inRange(1, 6);
  std::vector<Dropped> dropped;
  for (std::size_t i = 0; i < graph.data.size(); ++i) {
    const bool may_drop = std::ranges::none_of(graph.tasks, [&](const Task& task) {
      const bool writes = std::ranges::count(task.writes, DataId(i)) > 0;
      return writes && !(task.is_recomputable && task.phase == Phase::kForward);
    });
    if (graph.data[i].kind == DataKind::kState || !may_drop || *rc::gen::inRange(0, one_in) != 0) {
      continue;
    }
    dropped.push_back(
        {.data = DataId(i),
         .reuse = *rc::gen::element(Reuse::kUntilLastUse, Reuse::kPerUse, Reuse::kOnceRead)});
  }
  return RecomputationInserter{graph}.insert(runs_in_order(graph), dropped);
}

// Times from 100 ns to 0.2 ms, with equal weight for each power of two, and a link without latency.
// The choice of recomputed tasks then matters, and plans come close to bounds.
Profile unequal_profile(const TaskGraph& graph) {
  Profile profile = random_profile(graph);
  for (auto& durations : profile.durations) {
    durations[0] = um::Nanoseconds{100 << *rc::gen::inRange(0, 12)};
    if (durations.size() > 1) durations[1] = durations[0] / 2;
  }
  const um::Bandwidth rate{static_cast<double>(kPage.count()) /
                           (1e-7 * (1 << *rc::gen::inRange(0, 12)))};
  profile.link = {.offload = rate, .prefetch = rate, .copies_while_read = true};
  return profile;
}

// Tries many sequences that compute the right values with sensible and other drops: no plan is
// faster than the bound.
void expect_bounded_whatever_is_dropped(const TaskGraph& graph, const Profile& profile) {
  Problem given = random_problem(graph, profile);
  given.may_recompute = true;
  const um::Nanoseconds bound = lower_bounds(given).mixed_transition;
  const OffloadPlanner planner{given};
  constexpr int kSequences = 64;
  for (int i = 0; i < kSequences; ++i) {
    std::optional<std::vector<TaskRun>> runs = runs_that_drop_some(graph);
    if (i % 2 == 0) runs = RandomReruns{graph}.draw();
    if (!runs || check_dataflow(graph, *runs)) continue;
    const auto evaluated = planner.plan(*runs);
    if (evaluated) RC_ASSERT(bound <= evaluated->makespan);
  }
}

RC_GTEST_PROP(LowerBounds, AreNeverAboveAPlanThatDropsAnything, ()) {
  const TaskGraph graph = random_graph();
  expect_bounded_whatever_is_dropped(graph, random_profile(graph));
}

// Many tensors are read, updated in place and read again.
RC_GTEST_PROP(LowerBounds, AreNeverAboveAPlanOfASmallStepWithUpdatesInPlace, ()) {
  const TaskGraph graph = random_graph({.max_layers = 6, .in_place_one_in = 2});
  expect_bounded_whatever_is_dropped(graph, unequal_profile(graph));
}

}  // namespace
}  // namespace spillway::prefetch
