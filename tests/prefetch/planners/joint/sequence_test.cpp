// Sequences of runs, changed again and again, and the search for good ones.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "prefetch/far_update.h"
#include "prefetch/liveness.h"
#include "prefetch/moves/algorithm_choice.h"
#include "prefetch/moves/offload_plan.h"
#include "prefetch/planners/joint/run_sequence.h"
#include "prefetch/planners/joint/sequence_search.h"
#include "prefetch/planners/joint/unrolled_step.h"
#include "prefetch/planners/joint/value_graph.h"
#include "prefetch/simulate/simulate.h"
#include "prefetch/verify/dataflow.h"
#include "tests/prefetch/planned.h"
#include "tests/prefetch/random_graph.h"
#include "tests/prefetch/random_profile.h"
#include "tests/prefetch/three_layers.h"

namespace spillway::prefetch {
namespace {

using namespace testing;

// Returns the movable bytes beside state that each run needs when nothing is away.
std::vector<std::int64_t> needs(const Problem& problem, const std::vector<TaskRun>& runs) {
  const BlockSizes block_sizes{problem.graph, problem.page};
  const std::vector<Life> lives = find_lives(problem.graph, runs);
  std::int64_t state = 0;
  for (const Life& life : lives) {
    if (life.outlives_step())
      state += static_cast<std::int64_t>(block_sizes.size(life.data).count());
  }
  std::vector<std::int64_t> result;
  for (const um::Bytes need : demand(problem.graph, block_sizes, runs, lives)) {
    result.push_back(static_cast<std::int64_t>(need.count()) - state);
  }
  return result;
}

void expect_right(const Problem& problem, const RunSequence& sequence, std::int64_t pool) {
  const std::vector<TaskRun> runs = sequence.runs();
  RC_ASSERT(!check_dataflow(problem.graph, runs));
  const std::vector<std::int64_t> live = needs(problem, runs);
  std::int64_t excess = 0;
  double seconds = 0;
  for (RunSequence::Place p = 0; p < sequence.size(); ++p) {
    RC_ASSERT(sequence.live(p) == live[p]);
    excess += std::max<std::int64_t>(0, live[p] - pool);
    seconds += um::seconds(problem.profile(runs[p]));
  }
  RC_ASSERT(sequence.excess() == excess);
  RC_ASSERT(std::abs(sequence.seconds() - seconds) < 1e-9);
}

// Changes a sequence at random places; returns how often.
int change(RunSequence& sequence, const ValueGraph& graph) {
  int changes = 0;
  const auto below = [](std::size_t count) {
    return *rc::gen::inRange<std::uint32_t>(0, static_cast<std::uint32_t>(count));
  };
  for (int i = *rc::gen::inRange(1, 5); i > 0; --i) {
    const RunSequence::Run run = sequence.at(below(sequence.size()));
    const std::uint32_t kind = below(3);
    if (kind == 0 && sequence.task(run) >= graph.loads) {
      const auto window = sequence.window(run);
      sequence.shift(run, window.first + below(window.last - window.first + 1));
      ++changes;
    } else if (kind == 1) {
      const std::uint32_t place = below(sequence.size() + 1);
      if (!sequence.may_insert(sequence.task(run), place)) continue;
      sequence.insert(sequence.task(run), place);
      ++changes;
    } else if (kind == 2 && !sequence.reruns().empty()) {
      sequence.remove(sequence.reruns()[below(sequence.reruns().size())]);
      ++changes;
    }
  }
  return changes;
}

RC_GTEST_PROP(ARunSequence, KeepsItsValuesAndKnowsItsBytesThroughAllChanges, ()) {
  const TaskGraph graph = random_graph({.in_place_one_in = 3});
  const Profile profile = random_profile(graph);
  const Problem given = random_problem(graph, profile);
  const ValueGraph values{given, fastest_that_fit(given)};
  RunSequence sequence{values};
  const std::int64_t pool = std::max<std::int64_t>(0, values.pool);
  sequence.set_pool(pool);
  expect_right(given, sequence, pool);
  for (int round = 0; round < 12; ++round) {
    const std::vector<TaskRun> before = sequence.runs();
    change(sequence, values);
    sequence.settle();
    expect_right(given, sequence, pool);
    if (*rc::gen::arbitrary<bool>()) {
      sequence.commit();
      continue;
    }
    sequence.undo();
    sequence.settle();
    RC_ASSERT(sequence.runs() == before);
    expect_right(given, sequence, pool);
  }
}

RC_GTEST_PROP(TheSearchForASequence, FindsOneThatKeepsItsValuesAndFits, ()) {
  const TaskGraph graph = random_graph();
  const Profile profile = random_profile(graph);
  const Problem given = random_problem(graph, profile);
  const ValueGraph values{given, fastest_that_fit(given)};
  SequenceGoal goal{.pool = values.pool, .may_recompute = *rc::gen::arbitrary<bool>()};
  const bool moves = *rc::gen::arbitrary<bool>();
  if (moves) goal.out = goal.in = profile.link.offload.bytes_per_second();
  const auto found = search_sequence(values, goal, {.changes = 2000});
  RC_ASSERT(found == search_sequence(values, goal, {.changes = 2000}));
  if (!found) return;
  RC_ASSERT(!check_dataflow(graph, *found));
  RC_ASSERT(goal.may_recompute || std::ranges::none_of(*found, &TaskRun::is_recomputation));
  if (moves) return;
  for (const std::int64_t need : needs(given, *found)) RC_ASSERT(need <= goal.pool);
}

// A plan of the unrolled step is one of the sequence, with the same time.
void expect_planned_as_sequence(const TaskGraph& graph, const Profile& profile) {
  const Problem given = random_problem(graph, profile);
  const ValueGraph values{given, fastest_that_fit(given)};
  RunSequence sequence{values};
  for (int i = 0; i < 6; ++i) change(sequence, values);
  const UnrolledStep unrolled{given, sequence.runs()};
  const Problem beginning = unrolled.problem();
  std::vector<TaskRun> runs = sequence.runs();
  std::vector<TaskRun> once = runs_in_order(beginning.graph);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (beginning.graph.tasks[i].algorithms.size() > 1) once[i].algorithm = runs[i].algorithm;
  }
  const auto planned = OffloadPlanner{beginning}.plan(once);
  const auto expected = OffloadPlanner{given}.plan(runs);
  RC_ASSERT(planned.has_value() == expected.has_value());
  if (!planned) return;
  const Plan plan = unrolled.rolled_up(planned->plan);
  RC_ASSERT(reason_against(graph, plan).empty());
  RC_ASSERT(simulate(plan, profile).makespan() == planned->makespan);
}

RC_GTEST_PROP(AnUnrolledStep, IsPlannedAsItsSequenceIs, ()) {
  const TaskGraph graph = random_graph();
  expect_planned_as_sequence(graph, random_profile(graph));
}

RC_GTEST_PROP(AnUnrolledStep, KeepsExchangesBetweenRanks, ()) {
  const TaskGraph graph = exchanged(random_layers(*rc::gen::arbitrary<bool>()), kBucketEach);
  Profile profile = random_profile(graph);
  profile.exchanges = exchange_times(graph, two_ranks(), profile.link);
  expect_planned_as_sequence(graph, profile);
}

RC_GTEST_PROP(AnUnrolledStep, KeepsUpdatesOnTheFarSide, ()) {
  const TaskGraph near = random_layers();
  const TaskGraph graph = with_far_updates(near, far_updatable(near, kPage));
  Profile profile = random_profile(graph);
  profile.link.far_update = um::Bandwidth{1e9};
  profile.far_updates = far_update_times(graph, profile.link);
  expect_planned_as_sequence(graph, profile);
}

// "a" and "b" are large, and what is made of each is small. One after the other they fit.
TEST(TheSearchForASequence, RunsBranchesOneAfterTheOther) {
  const TaskGraph graph =
      toy_graph("a:8 b:8 c:1 d:1", "a = one(); b = two(); c = of a(a); d = of b(b); both(c, d)");
  TaskGraph free = graph;
  for (Task& task : free.tasks) task.is_recomputable = true;
  const Profile profile = flat_profile(free, um::Nanoseconds{100});
  const Problem given = problem(free, profile, pages(10));
  const ValueGraph values{given, runs_in_order(free)};
  const auto found = search_sequence(values, {.pool = values.pool}, {.changes = 1000});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->size(), 5U);
}

// "a" and "b" fit one after the other, but not together; the link would take 800 ns each way.
TEST(Joint, ChangesTheOrderOfTasksWhereThatPays) {
  TaskGraph graph = toy_graph("a:8 b:8 c:1 d:1 e:1",
                              "a = one(); b = two(); c = of a(a); d = of b(b); e = both(c, d)");
  graph.tasks[1].is_recomputable = true;  // not a load of the batch
  const Profile profile = flat_profile(graph, um::Nanoseconds{100}, um::Nanoseconds{100});
  Problem given = problem(graph, profile, pages(10));
  EXPECT_EQ(simulate(planned("joint", given), profile).makespan(), um::Nanoseconds{500});
  given.may_move = false;
  EXPECT_EQ(simulate(planned("joint", given), profile).makespan(), um::Nanoseconds{500});
  given.may_reorder = false;
  EXPECT_EQ(refused("joint", given).smallest_budget, given.budget + pages(7));
  given.may_move = true;
  EXPECT_GT(simulate(planned("joint", given), profile).makespan(), um::Nanoseconds{1000});
}

// "first" reads "x" twice, early and late; between them "big" takes its room. Both are forward.
TEST(Joint, RecomputesForAReaderOfTheForwardPass) {
  TaskGraph graph =
      toy_graph("x:8 y:1 b:8 z:1 w:1",
                "x = make(); y = first(x); b = big(y); z = small(b, y); w = last(x, z)");
  for (Task& task : graph.tasks) task.is_recomputable = true;
  const Profile profile = flat_profile(graph, um::Nanoseconds{100}, um::Nanoseconds{100});
  Problem given = problem(graph, profile, pages(11));
  given.may_recompute = true;
  for (const bool may_move : {false, true}) {
    given.may_move = may_move;
    const Plan plan = planned("joint", given);
    EXPECT_EQ(reason_against(graph, plan), "");
    EXPECT_EQ(simulate(plan, profile).makespan(), um::Nanoseconds{600});
  }
}

RC_GTEST_PROP(Joint, IsNoSlowerForItsFreedom, ()) {
  const TaskGraph graph = random_graph();
  const Profile profile = random_profile(graph);
  Problem given = random_problem(graph, profile);
  const Plan free = planned("joint", given);
  RC_ASSERT(reason_against(graph, free).empty());
  given.may_reorder = false;
  RC_ASSERT(simulate(free, profile).makespan() <=
            simulate(planned("joint", given), profile).makespan());
}

RC_GTEST_PROP(EveryPlanner, MovesNothingWhereItMayNot, ()) {
  const TaskGraph graph = random_graph();
  const Profile profile = random_profile(graph);
  Problem given = random_problem(graph, profile);
  given.may_move = false;
  for (const auto& planner : planners()) {
    const auto result = planner->plan(given);
    if (const auto* const plan = std::get_if<Plan>(&result)) {
      RC_ASSERT(!moves_anything(*plan));
      RC_ASSERT(reason_against(graph, *plan).empty());
    } else if (planner->name() == "joint") {
      Problem enough = given;
      enough.budget = std::get<Infeasible>(result).smallest_budget;
      RC_ASSERT(enough.budget > given.budget);
      RC_ASSERT(std::holds_alternative<Plan>(planner->plan(enough)));
    }
  }
}

}  // namespace
}  // namespace spillway::prefetch
