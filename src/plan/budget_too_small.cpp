#include "src/plan/budget_too_small.h"

#include "prefetch/block_sizes.h"
#include "prefetch/planner.h"
#include "prefetch/planners/smallest_budget.h"

namespace spillway {

using um::Bytes;

BudgetTooSmall::BudgetTooSmall(const prefetch::TaskGraph& graph, prefetch::TaskId task,
                               Bytes budget, Bytes smallest, const std::string& where)
    : Error{where + to_string(prefetch::Infeasible{.task = task, .smallest_budget = smallest},
                              graph, budget)},
      graph_{&graph},
      task_{task},
      budget_{budget},
      smallest_{smallest} {}

Bytes smallest_run_budget(const StepToPlan& step, const BudgetTooSmall& refusal,
                          const std::function<bool(Bytes)>& works) {
  const Bytes pinned = prefetch::BlockSizes{step.graph, step.page}.pinned();
  return prefetch::find_smallest({.always = step.elsewhere + pinned,
                                  .page = step.page,
                                  .refused = refusal.budget(),
                                  .claimed = refusal.smallest()},
                                 works)
      .value_or(refusal.smallest());
}

std::optional<BudgetTooSmall> too_small(const StepToPlan& step, Bytes budget) {
  if (budget >= step.need.smallest) return std::nullopt;
  return BudgetTooSmall{step.graph, step.need.largest_task, budget, step.need.smallest};
}

}  // namespace spillway
