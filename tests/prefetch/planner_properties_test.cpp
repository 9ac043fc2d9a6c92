#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "prefetch/bounds/bounds.h"
#include "prefetch/simulate/simulate.h"
#include "tests/prefetch/planned.h"
#include "tests/prefetch/random_graph.h"
#include "tests/prefetch/random_profile.h"
#include "tests/prefetch/trace_checker.h"

namespace spillway::prefetch {
namespace {

using namespace testing;

// Every plan of every planner verifies. Executing it with any noise never exceeds the budget or
// reads far bytes. No plan is faster than its bound, or than joint, which alone changes the order
// of tasks. A planner that finds the budget too small names one that works.
void expect_sound_plans(const TaskGraph& graph) {
  const Profile profile = random_profile(graph);
  const Problem given = random_problem(graph, profile);
  const Bounds bounds = lower_bounds(given);
  const Plan joint_plan = planned("joint", given);  // once: joint is the slowest planner
  const um::Nanoseconds joint = simulate(joint_plan, profile).makespan();
  for (const auto& planner : planners()) {
    Problem enough = given;
    const Plan plan = planner->name() == "joint" ? joint_plan : planned_with_more(*planner, enough);
    const std::string broken = reason_against(graph, plan);
    if (!broken.empty()) RC_FAIL(std::string{planner->name()} + ": " + broken);
    if (plan.residency == Residency::kOnDemand) continue;
    const um::Nanoseconds bound =
        planner->name() == "joint" ? bounds.any_order : bounds.mixed_transition;
    if (plan.budget == given.budget && simulate(plan, profile).makespan() < bound) {
      RC_FAIL(std::string{planner->name()} + " is faster than the bound");
    }
    if (plan.budget == given.budget && simulate(plan, profile).makespan() < joint) {
      RC_FAIL(std::string{planner->name()} + " is faster than joint");
    }
    const SimulateOptions noise{.noise = 0.9, .seed = *rc::gen::arbitrary<std::uint64_t>()};
    const std::string wrong =
        check_trace(graph, plan, simulate(plan, profile, noise), profile.link);
    if (!wrong.empty()) RC_FAIL(std::string{planner->name()} + ": " + wrong);
  }
}

RC_GTEST_PROP(EveryPlanner, KeepsTheBudgetOfADagUnderAnyTiming, ()) {
  expect_sound_plans(random_graph());
}

RC_GTEST_PROP(EveryPlanner, KeepsTheBudgetOfAChainUnderAnyTiming, ()) {
  expect_sound_plans(random_chain(12));
}

// A trace may state phases in any order: backward layers before forward ones, rounds of both.
RC_GTEST_PROP(EveryPlanner, KeepsTheBudgetWhateverThePhasesUnderAnyTiming, ()) {
  TaskGraph graph = random_graph();
  state_phases(graph);
  expect_sound_plans(graph);
}

// Each planner returns a verified plan, or names a budget that works, from the smallest budget up
// to more than the resident need.
RC_GTEST_PROP(EveryPlanner, PlansOrRefusesEveryBudgetWhateverThePhases, ()) {
  TaskGraph graph = random_graph({.max_layers = 8});
  state_phases(graph);
  const Profile profile = random_profile(graph);
  Problem given = random_problem(graph, profile);
  const NearNeed need = near_need(graph, BlockSizes{graph, kPage});
  for (given.budget = need.smallest; given.budget <= need.resident + kPage; given.budget += kPage) {
    for (const auto& planner : planners()) {
      if (planner->name() == "joint" && *rc::gen::inRange(0, 8) != 0) continue;  // takes longest
      const auto result = planner->plan(given);
      const auto* const plan = std::get_if<Plan>(&result);
      if (plan == nullptr) continue;
      const std::string broken = reason_against(graph, *plan);
      if (!broken.empty()) RC_FAIL(std::string{planner->name()} + ": " + broken);
    }
  }
}

// The smallest budget of near_need() is feasible, and one page less is not. (moDNN keeps weights
// near, so it needs more than planners that move them.)
RC_GTEST_PROP(EveryPlanner, IsFeasibleFromTheSmallestBudgetOn, ()) {
  const bool has_offloadable_weights = *rc::gen::inRange(0, 4) == 0;
  const TaskGraph graph = random_graph({.has_offloadable_weights = has_offloadable_weights});
  const Profile profile = random_profile(graph);
  std::vector<const char*> names{"capacity", "fractional", "joint", "on-demand"};
  if (!has_offloadable_weights) names.push_back("modnn");
  Problem given = random_problem(graph, profile);
  given.budget = near_need(graph, BlockSizes{graph, kPage}).smallest;
  for (const char* name : names) {
    RC_ASSERT(std::holds_alternative<Plan>(find_planner(name).plan(given)));
  }
  given.budget -= kPage;
  for (const char* name : names) {
    RC_ASSERT(std::holds_alternative<Infeasible>(find_planner(name).plan(given)));
  }
}

}  // namespace
}  // namespace spillway::prefetch
