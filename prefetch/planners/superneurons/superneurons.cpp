#include "prefetch/planners/superneurons/superneurons.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "prefetch/moves/algorithm_choice.h"
#include "prefetch/moves/offload_plan.h"
#include "prefetch/planners/superneurons/cost_aware_recomputation.h"
#include "prefetch/planners/superneurons/tensor_pool.h"
#include "um/error.h"

namespace spillway::prefetch {
namespace {

using um::Bytes;

struct Switch {
  std::string_view name;
  bool SuperNeuronsOptions::*part;
};

constexpr std::array<Switch, 4> kSwitches{{{"no-offload", &SuperNeuronsOptions::offload},
                                           {"no-cache", &SuperNeuronsOptions::tensor_cache},
                                           {"no-recompute", &SuperNeuronsOptions::recompute},
                                           {"no-workspace", &SuperNeuronsOptions::workspace}}};

const Switch& find_switch(std::string_view name) {
  std::string names;
  for (const Switch& each : kSwitches) {
    if (each.name == name) return each;
    names += (names.empty() ? "" : ", ") + std::string{each.name};
  }
  throw um::Error{"planner superneurons has no switch '" + std::string{name} + "'; it has " +
                  names};
}

// Gives each task its fastest algorithm that fits beside the near blocks at its runs. `near`
// includes the first algorithms' workspaces.
void choose_algorithms_beside(const std::vector<Bytes>& near, const Problem& problem,
                              const BlockSizes& block_sizes, std::vector<TaskRun>& runs) {
  const TaskGraph& graph = problem.graph;
  const Bytes pool = block_sizes.pool(problem.budget);
  std::vector<Bytes> room(graph.tasks.size(), pool);  // by task, at its fullest run
  for (Position p = 0; p < runs.size(); ++p) {
    Bytes& min = room[static_cast<std::size_t>(runs[p].task)];
    min = std::min(min, pool - near[p]);
  }
  for (TaskRun& run : runs) {
    const Bytes first = block_sizes.workspace_size(graph[run.task].algorithms[0].workspace);
    const Bytes free = room[static_cast<std::size_t>(run.task)] + first;
    run.algorithm = fastest_within(problem, block_sizes, run.task, free);
  }
}

}  // namespace

std::string superneurons_name(const SuperNeuronsOptions& options) {
  std::string name = "superneurons";
  char before = ':';
  for (const Switch& each : kSwitches) {
    if (options.*each.part) continue;
    name += before + std::string{each.name};
    before = ',';
  }
  return name;
}

SuperNeuronsOptions parse_superneurons_switches(std::string_view text) {
  SuperNeuronsOptions options;
  while (true) {
    const std::size_t comma = text.find(',');
    options.*find_switch(text.substr(0, comma)).part = false;
    if (comma == std::string_view::npos) return options;
    text.remove_prefix(comma + 1);
  }
}

std::variant<Plan, Infeasible> plan_superneurons(const Problem& problem,
                                                 const SuperNeuronsOptions& options) {
  const TaskGraph& graph = problem.graph;
  const BlockSizes block_sizes{graph, problem.page};
  std::vector<TaskRun> runs = runs_in_order(graph);
  if (options.recompute && problem.may_recompute) {
    const auto dropped = drop_cheap_layers(problem, runs, RecomputationStrategy::kCostAware);
    runs = RecomputationInserter{graph}.insert(runs, dropped);
  }
  const TensorPool tensors{graph, block_sizes, runs, options.offload};
  const TensorPool::Floor floor = tensors.floor();
  const Bytes smallest = block_sizes.pinned() + floor.size;
  if (smallest > problem.budget) {
    const TaskId max = runs.empty() ? TaskId{} : runs[floor.position].task;
    return Infeasible{.task = max, .smallest_budget = smallest};
  }
  std::vector<Swap> swaps =
      tensors.swaps(block_sizes.pool(problem.budget),
                    options.tensor_cache ? TensorPolicy::kCached : TensorPolicy::kEager);
  if (options.workspace) {
    const std::vector<Bytes> near = near_during(swaps, tensors.demand());
    choose_algorithms_beside(near, problem, block_sizes, runs);
  }
  Plan plan = empty_plan(problem, std::move(runs));
  add_moves(std::move(swaps), problem.profile.link, plan);
  return plan;
}

}  // namespace spillway::prefetch
