#include <algorithm>

#include "prefetch/block_sizes.h"
#include "prefetch/gradient_exchange.h"
#include "prefetch/liveness.h"
#include "prefetch/moves/algorithm_choice.h"
#include "prefetch/planners/strategies.h"

namespace spillway::prefetch {

std::variant<Plan, Infeasible> plan_resident(const Problem& problem) {
  const BlockSizes block_sizes{problem.graph, problem.page};
  const um::Bytes pool = block_sizes.pool(problem.budget);
  std::vector<TaskRun> runs = fastest_that_fit(problem);
  const std::vector<Life> lives = find_lives(problem.graph, runs);
  // Rejects a fast algorithm if its workspace would raise the peak above the budget.
  const std::vector<um::Bytes> live = demand(problem.graph, block_sizes, runs, lives);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (live[i] > pool) runs[i].algorithm = 0;
  }
  const std::vector<um::Bytes> final_live = demand(problem.graph, block_sizes, runs, lives);
  const auto max = std::ranges::max_element(final_live);
  if (block_sizes.pinned() > problem.budget || (max != final_live.end() && *max > pool)) {
    const um::Bytes need = near_need(problem.graph, block_sizes).resident;
    return Infeasible{.task = TaskId(max - final_live.begin()), .smallest_budget = need};
  }
  for (Position p = 0; p < runs.size(); ++p) runs[p].after = {.runs = p};
  Plan plan{.planner = {},
            .graph = fingerprint(problem.graph),
            .budget = problem.budget,
            .page = problem.page,
            .runs = std::move(runs)};
  add_exchanges(problem.graph, plan);
  return plan;
}

}  // namespace spillway::prefetch
