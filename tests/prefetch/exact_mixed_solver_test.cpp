// Shortest steps with state that may be far, compared with bounds and plans.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "prefetch/bounds/any_order.h"
#include "prefetch/bounds/bounds.h"
#include "prefetch/planner.h"
#include "prefetch/profile.h"
#include "prefetch/simulate/simulate.h"
#include "prefetch/verify/dataflow.h"
#include "tests/prefetch/exact_solver.h"
#include "tests/prefetch/planned.h"
#include "tests/prefetch/promised_contents.h"
#include "tests/prefetch/random_graph.h"
#include "tests/prefetch/random_profile.h"
#include "tests/prefetch/toy.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

// Finds the shortest makespan of any schedule that moves whole blocks and recomputes forward tasks
// at most `max_reruns` times in total, wherever every run keeps its right values; nullopt when
// none fits. For graphs of a handful of tasks.
///
// Searches all such sequences in order of compute time, with the best moves for each
// (ExactSolver). Skips sequences that compute longer than the best schedule so far. Skips reruns
// without a gap: their outputs are not read, or were used by the previous run.
class ExactMixedSolver {
 public:
  ExactMixedSolver(const Problem& problem, int max_reruns, bool any_order = false)
      : problem_{problem},
        promised_{problem.graph},
        max_reruns_{max_reruns},
        any_order_{any_order},
        has_run_(problem.graph.tasks.size(), false) {}

  std::optional<um::Nanoseconds> solve() {
    extend(0, 0);
    std::ranges::stable_sort(sequences_, {}, &Sequence::time);
    std::optional<um::Nanoseconds> best;
    for (const Sequence& sequence : sequences_) {
      if (best && sequence.time >= *best) break;
      ExactSolver solver{problem_, sequence.runs};
      const auto makespan = best ? solver.solve(*best) : solver.solve();
      if (makespan) best = makespan;
    }
    return best;
  }

 private:
  struct Sequence {
    um::Nanoseconds time{0};
    std::vector<TaskRun> runs;
  };

  // Continues with a task after the first `next` ones, or with any rerun.
  void extend(std::size_t next, int reruns) {
    const auto& tasks = problem_.graph.tasks;
    if (next == tasks.size()) return keep();
    for (std::size_t t = any_order_ ? 0 : next; t < (any_order_ ? tasks.size() : next + 1); ++t) {
      if (has_run_[t]) continue;
      has_run_[t] = true;
      runs_.push_back({.task = TaskId(t)});
      extend(next + 1, reruns);
      runs_.pop_back();
      has_run_[t] = false;
    }
    for (std::size_t t = 0; t < tasks.size() && reruns < max_reruns_; ++t) {
      const bool may_rerun =
          has_run_[t] && tasks[t].is_recomputable && tasks[t].phase == Phase::kForward;
      if (!may_rerun || uses_what_it_makes(TaskId(t))) continue;
      runs_.push_back({.task = TaskId(t), .is_recomputation = true});
      extend(next, reruns + 1);
      runs_.pop_back();
    }
  }

  // True if the last run uses the outputs, which leaves no time in which they were dropped.
  [[nodiscard]] bool uses_what_it_makes(TaskId task) const {
    const TaskId last = runs_.back().task;
    const std::vector<DataId>& reads = problem_.graph[last].reads;
    return std::ranges::all_of(problem_.graph[task].writes, [&](DataId id) {
      const auto read = std::ranges::find(reads, id) - reads.begin();
      if (read == std::ssize(reads)) return last == task;
      return promised_[last].reads[static_cast<std::size_t>(read)] ==
             PromisedContents::written_by(task);
    });
  }

  void keep() {
    const auto dying = dying_operands(problem_.graph, runs_);
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      if (!runs_[i].is_recomputation) continue;
      const bool is_wasted =
          std::ranges::all_of(problem_.graph[runs_[i].task].writes,
                              [&](DataId id) { return std::ranges::count(dying[i], id) > 0; });
      if (is_wasted) return;
    }
    if (check_dataflow(problem_.graph, runs_)) return;
    sequences_.push_back({.time = compute_time(problem_.profile, runs_), .runs = runs_});
  }

  const Problem& problem_;
  PromisedContents promised_;
  int max_reruns_;
  bool any_order_;             // not only the graph's
  std::vector<bool> has_run_;  // by task
  std::vector<TaskRun> runs_;  // the sequence being built
  std::vector<Sequence> sequences_;
};

constexpr int kMaxReruns = 3;

// chain(2) with blocks of 2 pages: load, f1, f2, loss, b2, b1. Each takes 100 ns, except load,
// which takes 50 and is recomputable. In a pool of 8, y0 must be away during b2 (see
// exact_solver_test.cpp). A page takes 50 ns each way.
class TwoLayers : public ::testing::Test {
 protected:
  TwoLayers() {
    graph.tasks[0].is_recomputable = true;
    profile = flat_profile(graph, 100ns);
    profile.durations[0] = {50ns};
    profile.link = toy_link(50ns);
  }
  TaskGraph graph = chain(2, pages(2));
  Profile profile;
};

// Moving y0 back takes 100 ns between b2 and b1: 550 + 100. Recomputing it takes 50: 600.
TEST_F(TwoLayers, RunLoadAgainWhereThatIsFasterThanTheLink) {
  const Problem given = problem(graph, profile, pages(8));
  EXPECT_EQ(ExactMixedSolver(given, 0).solve(), 650ns);
  EXPECT_EQ(ExactMixedSolver(given, 1).solve(), 600ns);
  EXPECT_EQ(ExactMixedSolver(given, 3).solve(), 600ns);
}

TEST_F(TwoLayers, MoveWhereTheLinkIsFaster) {
  profile.durations[0] = {200ns};  // 700 in total
  EXPECT_EQ(ExactMixedSolver(problem(graph, profile, pages(8)), 3).solve(), 800ns);
}

TEST_F(TwoLayers, DoNeitherWhereAllFits) {
  EXPECT_EQ(ExactMixedSolver(problem(graph, profile, pages(10)), 3).solve(), 550ns);
}

// In half of the cases recomputable tasks take a tenth of their time.
Profile profile_with_cheap_reruns(const TaskGraph& graph) {
  Profile profile = random_profile(graph);
  if (*rc::gen::arbitrary<bool>()) return profile;
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
    if (!graph.tasks[t].is_recomputable) continue;
    for (um::Nanoseconds& duration : profile.durations[t]) duration = duration / 10;
  }
  return profile;
}

Problem tiny_problem(const TaskGraph& graph, const Profile& profile) {
  return {.graph = graph,
          .profile = profile,
          .budget = random_budget(graph),
          .page = kPage,
          .chunk = pages(6),
          .whole_blocks = true,
          .may_recompute = true,
          .may_reorder = false};
}

// The bounds also hold for sequences that planners do not consider: any reruns, with the best
// moves. A plan of `joint` with whole blocks and as few reruns is one of these.
void expect_between_bounds_and_joint(const TaskGraph& graph) {
  const Profile profile = profile_with_cheap_reruns(graph);
  const Problem given = tiny_problem(graph, profile);
  const auto optimum = ExactMixedSolver{given, kMaxReruns}.solve();
  RC_ASSERT(optimum.has_value());
  const Bounds bounds = lower_bounds(given);
  RC_ASSERT(bounds.mixed <= bounds.mixed_transition);
  RC_ASSERT(bounds.mixed_transition <= *optimum);
  RC_ASSERT(mixed_transition_bound(given) == bounds.mixed_transition);
  const Plan plan = planned("joint", given);
  const auto reruns = std::ranges::count(plan.runs, true, &TaskRun::is_recomputation);
  const bool is_first =
      std::ranges::all_of(plan.runs, [](const TaskRun& run) { return run.algorithm == 0; });
  if (reruns > kMaxReruns || !is_first) return;
  RC_ASSERT(*optimum <= simulate(plan, profile).makespan());
  RC_CLASSIFY(*optimum < *ExactSolver{given}.solve(), "reruns are faster");
}

RC_GTEST_PROP(TheMixedOptimum, OfATinyChainIsBetweenBoundsAndJoint, ()) {
  expect_between_bounds_and_joint(random_chain(3));
}

RC_GTEST_PROP(TheMixedOptimum, OfATinyGraphIsBetweenBoundsAndJoint, ()) {
  expect_between_bounds_and_joint(
      random_graph({.max_layers = 3, .has_offloadable_weights = false}));
}

Problem in_whole_blocks(const TaskGraph& graph, const Profile& profile, um::Bytes budget) {
  return {.graph = graph,
          .profile = profile,
          .budget = budget,
          .page = kPage,
          .chunk = kPage,
          .whole_blocks = true};
}

// "use" reads the weight of 2 pages, "other" touches only t, of 3 pages, "update" changes the
// weight; pool of 3. Near: out 20 before "other", in 20 before "update". With a far copy: in 20
// before "update", out and in after it. Far: in 20 first, in 20 again, out 20 last.
TEST(ExactState, IsWhereEachHomeSays) {
  TaskGraph graph = toy_graph("w:2 t:3", "use(w); t = other(); w = update(w)");
  make_offloadable(graph, DataId{0});
  const Profile profile = flat_profile(graph, 100ns);
  const Problem given =
      in_whole_blocks(graph, profile, BlockSizes{graph, kPage}.pinned() + pages(3));
  const auto with = [&](ExactHome home) {
    return ExactSolver{given, runs_in_order(graph), {home, ExactHome::kNear}}.solve();
  };
  EXPECT_EQ(with(ExactHome::kNear), 340ns);
  EXPECT_EQ(with(ExactHome::kNearWithCopy), 360ns);
  EXPECT_EQ(with(ExactHome::kFar), 360ns);
  EXPECT_EQ(shortest_with_state(given), 340ns);
}

// No task writes the weight: its far copy stays valid.
TEST(ExactState, IsFreedWithoutACopyWhereNobodyWritesIt) {
  TaskGraph graph = toy_graph("w:2 t:3", "use(w); t = other(); again(w)");
  make_offloadable(graph, DataId{0});
  const Profile profile = flat_profile(graph, 100ns);
  const Problem given =
      in_whole_blocks(graph, profile, BlockSizes{graph, kPage}.pinned() + pages(3));
  EXPECT_EQ(shortest_with_state(given), 320ns);
  EXPECT_EQ(simulate(planned("capacity", given), profile).makespan(), 320ns);
}

RC_GTEST_PROP(TheOptimumWithState, IsBetweenBoundsAndPlans, ()) {
  TaskGraph graph = random_graph({.max_layers = 4, .has_offloadable_weights = true});
  for (Task& task : graph.tasks) task.algorithms.resize(1);
  const Profile profile = random_profile(graph);
  const Problem given = in_whole_blocks(graph, profile, random_budget(graph));
  const auto optimum = shortest_with_state(given);
  RC_ASSERT(optimum.has_value());
  const Bounds bounds = lower_bounds(given);
  RC_ASSERT(bounds.beaumont <= bounds.offload);
  RC_ASSERT(bounds.offload <= bounds.offload_transition);
  RC_ASSERT(bounds.offload_transition <= *optimum);
  const Plan plan = planned("capacity", given);
  RC_ASSERT(reason_against(graph, plan).empty());
  RC_ASSERT(simulate(plan, profile).makespan() >= *optimum);
}

// Tasks read any earlier tensors, and may update one in place.
TaskGraph tiny_dag() {
  TaskGraph graph;
  const int tasks = *rc::gen::inRange(3, 7);
  std::vector<DataId> made;
  const auto any = [&made] { return made[*rc::gen::inRange<std::size_t>(0, made.size())]; };
  for (int t = 0; t < tasks; ++t) {
    Task task{.name = "t" + std::to_string(t), .is_recomputable = *rc::gen::inRange(0, 4) > 0};
    for (int reads = *rc::gen::inRange(0, 3); reads > 0 && !made.empty(); --reads) {
      const DataId read = any();
      if (std::ranges::count(task.reads, read) == 0) task.reads.push_back(read);
    }
    if (!task.reads.empty() && *rc::gen::inRange(0, 5) == 0) {
      task.writes = {task.reads[0]};
    } else {
      const um::Bytes size = pages(*rc::gen::inRange<std::uint64_t>(1, 5));
      made.push_back(graph.add(DataBlock{.name = "x" + std::to_string(t), .size = size}));
      task.writes = {made.back()};
    }
    graph.add(task);
  }
  return graph;
}

RC_GTEST_PROP(TheOptimumOfATinyDag, IsNoLowerThanTheBoundOfAnyOrder, ()) {
  const TaskGraph graph = tiny_dag();
  const Profile profile = profile_with_cheap_reruns(graph);
  Problem given = tiny_problem(graph, profile);
  given.whole_blocks = true;
  given.may_recompute = *rc::gen::arbitrary<bool>();
  const auto optimum = ExactMixedSolver(given, given.may_recompute ? 2 : 0, true).solve();
  RC_ASSERT(optimum.has_value());
  RC_ASSERT(any_order_bound(given) <= *optimum);
  RC_ASSERT(lower_bounds(given).any_order == any_order_bound(given));
}

}  // namespace
}  // namespace spillway::prefetch
