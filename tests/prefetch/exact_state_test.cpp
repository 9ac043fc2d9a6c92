// The shortest steps whose state may be far, against bounds and plans.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "prefetch/bounds/bounds.h"
#include "prefetch/simulate/simulate.h"
#include "tests/prefetch/exact_solver.h"
#include "tests/prefetch/planned.h"
#include "tests/prefetch/random_graph.h"
#include "tests/prefetch/random_profile.h"
#include "tests/prefetch/toy_graph.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

Problem in_whole_blocks(const TaskGraph& graph, const Profile& profile, um::Bytes budget) {
  return {.graph = graph,
          .profile = profile,
          .budget = budget,
          .page = kPage,
          .chunk = kPage,
          .whole_blocks = true};
}

// "use" reads the weight of 2 pages, "other" touches only t, of 3, "update" changes the weight, in
// a pool of 3. Near: out 20 before "other", in 20 before "update". With a far copy: in 20 before
// "update", out and in after it. Far: in 20 first, in 20 again, out 20 last.
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

// Nobody writes the weight: a far copy of it stays valid.
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

}  // namespace
}  // namespace spillway::prefetch
