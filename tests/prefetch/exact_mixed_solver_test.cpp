#include "tests/prefetch/exact_mixed_solver.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "prefetch/bounds/bounds.h"
#include "prefetch/simulate/simulate.h"
#include "tests/prefetch/planned.h"
#include "tests/prefetch/random_chain.h"
#include "tests/prefetch/random_graph.h"
#include "tests/prefetch/random_profile.h"
#include "tests/prefetch/toy.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

constexpr int kMaxReruns = 3;

// chain(2) with blocks of 2 pages: load, f1, f2, loss, b2, b1 of 100 ns each but load, which takes
// 50 and may run again. In a pool of 8 y0 must be away during b2 (see exact_solver_test.cpp). A
// page takes 50 ns each way.
class TwoLayers : public ::testing::Test {
 protected:
  TwoLayers() {
    graph.tasks[0].is_recomputable = true;
    profile = flat_profile(graph, 100ns);
    profile.durations[0] = {50ns};
    const um::Bandwidth rate{static_cast<double>(kPage.count()) / 50e-9};
    profile.link = {.offload = rate, .prefetch = rate};
  }
  TaskGraph graph = chain(2, pages(2));
  Profile profile;
};

// Moved, y0 comes back in 100 ns between b2 and b1: 550 + 100. Made again in 50: 600.
TEST_F(TwoLayers, RunLoadAgainWhereThatIsFasterThanTheLink) {
  const Problem given = problem(graph, profile, pages(8));
  EXPECT_EQ(ExactMixedSolver(given, 0).solve(), 650ns);
  EXPECT_EQ(ExactMixedSolver(given, 1).solve(), 600ns);
  EXPECT_EQ(ExactMixedSolver(given, 3).solve(), 600ns);
}

TEST_F(TwoLayers, MoveWhereTheLinkIsFaster) {
  profile.durations[0] = {200ns};  // 700 in all
  EXPECT_EQ(ExactMixedSolver(problem(graph, profile, pages(8)), 3).solve(), 800ns);
}

TEST_F(TwoLayers, DoNeitherWhereAllFits) {
  EXPECT_EQ(ExactMixedSolver(problem(graph, profile, pages(10)), 3).solve(), 550ns);
}

// In half of the cases what may run again takes a tenth of its time.
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
          .may_recompute = true};
}

// The bounds hold for what nobody plans: any sequence that reruns tasks, with its best moves. A
// plan of `joint` that moves whole blocks and reruns no more tasks is one of them.
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

}  // namespace
}  // namespace spillway::prefetch
