#pragma once

#include <functional>
#include <optional>
#include <string>

#include "prefetch/task_graph.h"
#include "src/plan/step_to_plan.h"
#include "um/bytes.h"
#include "um/error.h"

namespace spillway {

/// No plan of the planner asked for keeps the budget; says what would work.
class BudgetTooSmall final : public um::Error {
 public:
  /// `budget` and `smallest` are of the whole run; `task` is the task of `graph` that needs most.
  BudgetTooSmall(const prefetch::TaskGraph& graph, prefetch::TaskId task, um::Bytes budget,
                 um::Bytes smallest, const std::string& where = "");
  /// The same with another smallest budget, of a run `where`. Requires: the graph is still there.
  [[nodiscard]] BudgetTooSmall with(um::Bytes smallest, const std::string& where = "") const {
    return {*graph_, task_, budget_, smallest, where};
  }
  [[nodiscard]] um::Bytes budget() const noexcept { return budget_; }
  [[nodiscard]] um::Bytes smallest() const noexcept { return smallest_; }

 private:
  const prefetch::TaskGraph* graph_;
  prefetch::TaskId task_;
  um::Bytes budget_;
  um::Bytes smallest_;
};

/// The smallest budget of a whole run that `works`, above the one that `refusal` speaks of: one
/// page less does not. `step` is any of the run's.
[[nodiscard]] um::Bytes smallest_run_budget(const StepToPlan& step, const BudgetTooSmall& refusal,
                                            const std::function<bool(um::Bytes)>& works);

/// Says that no plan of any planner can keep `budget`, which is the whole run's; nothing where one
/// can.
[[nodiscard]] std::optional<BudgetTooSmall> too_small(const StepToPlan& step, um::Bytes budget);

}  // namespace spillway
