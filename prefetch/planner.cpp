#include "prefetch/planner.h"

#include <algorithm>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/liveness.h"
#include "prefetch/state_home.h"
#include "um/bytes.h"
#include "um/text/wording.h"

namespace spillway::prefetch {

using um::Bytes;

NearNeed near_need(const TaskGraph& graph, const BlockSizes& block_sizes) {
  NearNeed need{.resident = block_sizes.pinned(), .smallest = block_sizes.pinned()};
  if (graph.tasks.empty()) return need;
  const std::vector<TaskRun> runs = runs_in_order(graph);
  const std::vector<Bytes> live = demand(graph, block_sizes, runs, find_lives(graph, runs));
  const std::vector<Bytes> sets = working_sets(graph, block_sizes, runs);
  const auto largest = std::ranges::max_element(sets);
  need.resident += *std::ranges::max_element(live);
  Bytes workspace;
  for (const Task& task : graph.tasks) {
    for (const Algorithm& algorithm : task.algorithms) {
      workspace = std::max(workspace, block_sizes.workspace_size(algorithm.workspace));
    }
  }
  need.peak_with_workspace = need.resident + workspace;
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

um::Bytes chunk_for(const LinkProfile& link) {
  const double fastest =
      std::max(link.offload.bytes_per_second(), link.prefetch.bytes_per_second());
  const double wanted = 100 * um::seconds(link.latency) * fastest;
  um::Bytes chunk{16ULL << 20U};
  while (static_cast<double>(chunk.count()) < wanted && chunk.count() < 1ULL << 40U) {
    chunk += chunk;
  }
  return chunk;
}

Infeasible infeasible(const Problem& problem) {
  const NearNeed need = near_need(problem.graph, BlockSizes{problem.graph, problem.page});
  return {.task = need.largest_task, .smallest_budget = need.smallest};
}

PlanFacts facts_of(const Plan& plan, const TaskGraph& graph) {
  PlanFacts facts;
  for (const Move& move : plan.offloads) {
    if (!move.is_clean) facts.offloaded += move.size;
  }
  for (const Move& move : plan.prefetches) facts.prefetched += move.size;
  const BlockSizes block_sizes{graph, plan.page};
  facts.state_far = StateHome{graph, block_sizes, plan}.far();
  for (const FarUpdate& update : graph.far_updates) {
    for (const DataId id : update.numbers) facts.state_far += block_sizes.size(id);
  }
  facts.far_updates = plan.far_runs.size();
  for (const TaskRun& run : plan.runs) {
    if (run.is_recomputation) ++facts.recomputed_tasks;
    const std::string& algorithm = graph[run.task].algorithms[run.algorithm].name;
    if (algorithm != Algorithm{}.name) ++facts.algorithms[algorithm];
  }
  return facts;
}

um::Nanoseconds fastest_step(const Profile& profile) {
  um::Nanoseconds sum{0};
  for (const std::vector<um::Nanoseconds>& algorithms : profile.durations) {
    sum += *std::ranges::min_element(algorithms);
  }
  return sum;
}

}  // namespace spillway::prefetch
