#include "prefetch/bounds/bounds.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "prefetch/moves/offload_plan.h"
#include "prefetch/moves/recomputation.h"
#include "prefetch/plan.h"
#include "prefetch/simulate/simulate.h"
#include "prefetch/task_graph.h"
#include "prefetch/verify/dataflow.h"
#include "tests/prefetch/planned.h"
#include "tests/prefetch/promised_contents.h"
#include "tests/prefetch/random_graph.h"
#include "tests/prefetch/random_profile.h"
#include "tests/prefetch/toy.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

// Random sequences of runs with recomputations, generated without the planners' code. After some
// runs of the backward pass contents are forgotten. Before each run, tasks run again to make its
// missing promised inputs, recursively. A task may thus recreate an older content of a block, and
// the tasks that updated it in place run again afterwards.
class RandomReruns {
 public:
  explicit RandomReruns(const TaskGraph& graph)
      : graph_{graph}, promised_{graph}, held_(graph.data.size(), kNothing) {}

  // Returns nullopt if forgotten contents cannot be recreated, or only with too many runs.
  std::optional<std::vector<TaskRun>> draw() {
    const int forgets_one_in = *rc::gen::inRange(2, 12);
    for (std::size_t i = 0; i < graph_.data.size(); ++i) {
      held_[i] = graph_.data[i].kind == DataKind::kState ? kInitial : kNothing;
    }
    for (std::size_t t = 0; t < graph_.tasks.size(); ++t) {
      const Task& task = graph_.tasks[t];
      if (task.phase != Phase::kForward) forget(forgets_one_in);
      if (!provide(TaskId(t), 0)) return std::nullopt;
      run(TaskId(t), false);
    }
    for (std::size_t i = 0; i < graph_.data.size(); ++i) {
      const bool is_state = graph_.data[i].kind == DataKind::kState;
      if (is_state && held_[i] != promised_.final(DataId(i))) return std::nullopt;
    }
    return std::move(runs_);
  }

 private:
  static constexpr std::size_t kMaxRuns = 200;
  static constexpr int kDeepest = 20;

  void forget(int one_in) {
    for (std::size_t i = 0; i < graph_.data.size(); ++i) {
      if (held_[i] <= kInitial || graph_.data[i].kind == DataKind::kState) continue;
      const Task& writer = graph_[PromisedContents::writer_of(held_[i])];
      if (writer.is_recomputable && *rc::gen::inRange(0, one_in) == 0) held_[i] = kNothing;
    }
  }

  // Makes all promised inputs of `task`; returns false if that is impossible.
  bool provide(TaskId task, int depth) {
    const std::vector<DataId>& reads = graph_[task].reads;
    const std::vector<Content>& wanted = promised_[task].reads;
    for (std::size_t i = 0; i < reads.size(); ++i) {
      if (held(reads[i]) != wanted[i] && !make(wanted[i], depth)) return false;
    }
    for (std::size_t i = 0; i < reads.size(); ++i) {
      if (held(reads[i]) != wanted[i]) return false;  // making one destroyed another
    }
    return true;
  }

  bool make(Content content, int depth) {
    if (content <= kInitial || depth > kDeepest || runs_.size() > kMaxRuns) return false;
    const TaskId writer = PromisedContents::writer_of(content);
    const bool has_run = std::ranges::count(runs_, writer, &TaskRun::task) > 0;
    if (!has_run || !graph_[writer].is_recomputable || !provide(writer, depth + 1)) return false;
    run(writer, true);
    return true;
  }

  void run(TaskId task, bool is_recomputation) {
    runs_.push_back({.task = task, .is_recomputation = is_recomputation});
    for (const DataId id : graph_[task].writes) {
      held_[static_cast<std::size_t>(id)] = PromisedContents::written_by(task);
    }
  }

  [[nodiscard]] Content held(DataId id) const { return held_[static_cast<std::size_t>(id)]; }

  const TaskGraph& graph_;
  PromisedContents promised_;
  std::vector<Content> held_;  // by block
  std::vector<TaskRun> runs_;
};

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
  const Profile profile = flat_profile(graph, 100ns, 100ns);
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
  const Profile profile = flat_profile(graph, 100ns, 100ns);
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
    const Profile profile = flat_profile(graph, 100ns, 100ns);
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
  const Bounds bounds = lower_bounds(problem(graph, flat_profile(graph, 100ns, 100ns), pages(4)));
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
    const um::Nanoseconds bound =
        may_recompute ? bounds.mixed_transition : bounds.offload_transition;
    for (const char* name : {"fractional", "joint"}) {
      given.may_reorder = false;
      RC_ASSERT(bound <= simulate(planned(name, given), profile).makespan());
    }
    given.may_reorder = true;
    RC_ASSERT(bounds.any_order <= simulate(planned("joint", given), profile).makespan());
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
