#pragma once

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "prefetch/planner.h"
#include "tests/prefetch/planned.h"
#include "tests/prefetch/random_graph.h"
#include "tests/prefetch/random_profile.h"
#include "tests/prefetch/runtime/step_modes.h"

namespace spillway::prefetch::testing {

/// Returns a random training step with more features than random_graph(): weights that each
/// backward task updates, running statistics in each forward task that a recomputation must not
/// update, and a tensor too small to move. In some steps weights may be far, also between steps.
inline TaskGraph random_step() {
  const bool may_leave = *rc::gen::arbitrary<bool>();
  TaskGraph graph = random_graph({.has_offloadable_weights = may_leave});
  const auto add_state = [&](const std::string& name, std::uint64_t words) {
    return graph.add(
        DataBlock{.name = name, .size = um::Bytes{8 * words}, .kind = DataKind::kState});
  };
  const auto add_weights = [&](const std::string& name) {
    const DataId weights = add_state(name, 5);
    if (may_leave && *rc::gen::inRange(0, 3) == 0) {
      graph.data.back().is_offloadable = true;
      graph.data.back().size = pages(*rc::gen::inRange<std::uint64_t>(1, 4)) - um::Bytes{16};
    }
    return weights;
  };
  const DataId labels = graph.add(DataBlock{.name = "labels", .size = um::Bytes{16}});
  graph.tasks[0].writes.push_back(labels);
  for (std::size_t t = 1; t < graph.tasks.size(); ++t) {
    Task& task = graph.tasks[t];
    if (task.name == "loss") task.reads.push_back(labels);
    if (task.phase == Phase::kForward) {
      task.updates_once.push_back(add_state("running of " + task.name, 3));
    } else {
      const DataId weights = add_weights("weights of " + task.name);
      task.reads.push_back(weights);
      task.writes.push_back(weights);
    }
  }
  return graph;
}

/// Returns a random budget between the smallest feasible one and a little more than the resident
/// need.
inline um::Bytes random_step_budget(const TaskGraph& graph) {
  const NearNeed need = near_need(graph, BlockSizes{graph, kPage});
  const std::uint64_t slack = (need.peak_with_workspace - need.smallest) / kPage;
  return need.smallest + pages(*rc::gen::inRange<std::uint64_t>(0, slack + 2));
}

inline Problem random_step_problem(const TaskGraph& graph, const Profile& profile) {
  return {.graph = graph,
          .profile = profile,
          .budget = random_step_budget(graph),
          .page = kPage,
          .chunk = pages(*rc::gen::inRange<std::uint64_t>(1, 5)),
          .may_recompute = *rc::gen::arbitrary<bool>(),
          // A search for orders takes ten times as long.
          .may_reorder = *rc::gen::weightedElement<bool>({{3, false}, {1, true}})};
}

inline Plan verified_plan(const Problem& problem, const std::string& planner) {
  auto planned = find_planner(planner).plan(problem);
  RC_ASSERT(std::holds_alternative<Plan>(planned));
  auto plan = std::get<Plan>(std::move(planned));
  RC_ASSERT(reason_against(problem.graph, plan) == "");
  return plan;
}

inline um::Bytes peak_of(const TaskGraph& graph, const Plan& plan) {
  return std::get<Verified>(verify(graph, plan)).peak;
}

/// Checks a random step under a plan of unified memory: it gives the plain step's result, every
/// byte is near before it is touched, nothing is evicted, and the verified peak is kept.
inline void check_planned_managed(um::Paging paging) {
  const TaskGraph graph = random_step();
  const Profile profile = random_profile(graph);
  const Plan plan = verified_plan(random_step_problem(graph, profile), "fractional");
  const ToyResult wanted = run_plainly(graph, kSteps);
  for (const bool poison : {true, false}) {
    const Executed executed = execute_managed(graph, plan, paging, poison);
    RC_ASSERT(executed.result == wanted);
    RC_ASSERT(executed.counters.faults == 0U);
    RC_ASSERT(executed.counters.evictions == 0U);
    RC_ASSERT(executed.counters.refused_hints == 0U);
    RC_ASSERT(executed.peak <= peak_of(graph, plan));
  }
}

/// Checks the same step with page faults only.
inline void check_on_demand_managed(um::Paging paging) {
  const TaskGraph graph = random_step();
  const Profile profile = random_profile(graph);
  const Plan plan = verified_plan(random_step_problem(graph, profile), "on-demand");
  const Executed executed = execute_managed(graph, plan, paging);
  RC_ASSERT(executed.result == run_plainly(graph, kSteps));
  RC_ASSERT(executed.counters.faults > 0U);
  RC_ASSERT(executed.peak <= plan.budget);
}

}  // namespace spillway::prefetch::testing
