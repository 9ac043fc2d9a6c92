#include "prefetch/need.h"

#include <algorithm>

#include "prefetch/liveness.h"
#include "um/text/wording.h"

namespace spillway::prefetch {

using um::Bytes;

namespace {

Bytes largest_workspace(const TaskGraph& graph, const BlockSizes& block_sizes) {
  Bytes largest;
  for (const Task& task : graph.tasks) {
    for (const Algorithm& algorithm : task.algorithms) {
      largest = std::max(largest, block_sizes.workspace_size(algorithm.workspace));
    }
  }
  return largest;
}

}  // namespace

NearNeed near_need(const TaskGraph& graph, const BlockSizes& block_sizes) {
  NearNeed need{.resident = block_sizes.pinned(), .smallest = block_sizes.pinned()};
  if (graph.tasks.empty()) return need;
  const std::vector<TaskRun> runs = runs_in_order(graph);
  const std::vector<Bytes> live = demand(graph, block_sizes, runs, find_lives(graph, runs));
  const std::vector<Bytes> sets = working_sets(graph, block_sizes, runs);
  const auto largest = std::ranges::max_element(sets);
  need.resident += *std::ranges::max_element(live);
  need.peak_with_workspace = need.resident + largest_workspace(graph, block_sizes);
  need.smallest += *largest;
  need.largest_task = TaskId(largest - sets.begin());
  return need;
}

Infeasible need_max(const BlockSizes& block_sizes, std::span<const TaskRun> runs,
                    std::span<const Bytes> near) {
  const auto max = std::ranges::max_element(near);
  if (max == near.end()) return {.smallest_budget = block_sizes.pinned()};
  return {.task = runs[static_cast<std::size_t>(max - near.begin())].task,
          .smallest_budget = block_sizes.pinned() + *max};
}

std::string to_string(const Infeasible& infeasible, const TaskGraph& graph, Bytes budget) {
  const std::string max =
      graph.tasks.empty() ? "" : ": task " + graph[infeasible.task].name + " needs most";
  const Bytes smallest = infeasible.smallest_budget;
  return "a budget of " + um::texts_apart(budget, smallest).first + " is too small" + max +
         "; the smallest budget that works is " + std::to_string(smallest.count()) + " bytes (" +
         um::to_string(smallest) + ")";
}

}  // namespace spillway::prefetch
