#include "prefetch/need.h"

#include <algorithm>

#include "prefetch/liveness.h"

namespace spillway::prefetch {

using um::Bytes;

namespace {

Bytes largest_workspace(const TaskGraph& graph, const Occupancy& occupancy) {
  Bytes largest;
  for (const Task& task : graph.tasks) {
    for (const Algorithm& algorithm : task.algorithms) {
      largest = std::max(largest, occupancy.workspace_size(algorithm.workspace));
    }
  }
  return largest;
}

}  // namespace

NearNeed near_need(const TaskGraph& graph, const Occupancy& occupancy) {
  NearNeed need{.resident = occupancy.always_near(), .smallest = occupancy.always_near()};
  if (graph.tasks.empty()) return need;
  const std::vector<TaskRun> runs = runs_in_order(graph);
  const std::vector<Bytes> live = demand(graph, occupancy, runs, find_lives(graph, runs));
  const std::vector<Bytes> sets = working_sets(graph, occupancy, runs);
  const auto largest = std::ranges::max_element(sets);
  need.resident += *std::ranges::max_element(live);
  need.roomy = need.resident + largest_workspace(graph, occupancy);
  need.smallest += *largest;
  need.largest_task = TaskId(largest - sets.begin());
  return need;
}

Infeasible need_most(const Occupancy& occupancy, std::span<const TaskRun> runs,
                     std::span<const Bytes> near) {
  const auto most = std::ranges::max_element(near);
  if (most == near.end()) return {.smallest_budget = occupancy.always_near()};
  return {.task = runs[static_cast<std::size_t>(most - near.begin())].task,
          .smallest_budget = occupancy.always_near() + *most};
}

std::string to_string(const Infeasible& infeasible, const TaskGraph& graph, Bytes budget) {
  const std::string most =
      graph.tasks.empty() ? "" : ": task " + graph[infeasible.task].name + " needs most";
  return "a budget of " + um::to_string(budget) + " is too small" + most +
         "; the smallest budget that works is " +
         std::to_string(infeasible.smallest_budget.count()) + " bytes (" +
         um::to_string(infeasible.smallest_budget) + ")";
}

}  // namespace spillway::prefetch
