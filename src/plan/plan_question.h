#pragma once

#include <optional>

#include "prefetch/profile.h"
#include "prefetch/simulate/timeline.h"
#include "src/plan/plans.h"
#include "src/plan/state_choice.h"
#include "src/plan/workload.h"
#include "um/bytes.h"

namespace spillway {

/// A question to planning: which of these steps run within a budget, and by which plans.
struct PlanQuestion {
  const Workload& steps;  ///< planned first
  const StateChoice* choice =
      nullptr;  ///< holds `steps`, and others that may run; null: only `steps` may run
  prefetch::Profile profile;  ///< of the training step of `steps`; others' times follow
  um::Bytes budget;           ///< of the whole run
  PlanRequest request;
  /// The plan of the training step of `steps`, if a file gives it.
  std::optional<PlanOfFile> file = {};
  bool evaluates = true;  ///< false: its evaluation is not planned, nor its resident need checked
};

/// The fastest plans of a run, proved.
struct PlanAnswer {
  const Workload* workload = nullptr;  ///< which steps they are of
  prefetch::Profile profile;           ///< of its training step
  Plans plans;                         ///< in resident mode, their budget is what the run needs
  um::Bytes peak;                      ///< of the training step, under any timing
  prefetch::Timeline timeline;         ///< likewise, as simulated
  um::Nanoseconds step{0};             ///< a batch by these plans, as predicted_step() says
  um::Nanoseconds planning{0};         ///< how long planners took for training steps
};

/// Plans the steps, or takes the plan of a file. If there is a choice and these plans wait, or
/// there are none, also plans the steps with state that moves. They count if they are faster by a
/// twentieth: moves cost what no prediction knows. If they are chosen, updates on the far side are
/// tried likewise. Throws: BudgetTooSmall with the smallest budget of all that were refused;
/// um::Error, the sentence for the user, where a plan of a file cannot be used, or a run without
/// moves needs more than the budget.
[[nodiscard]] PlanAnswer answer(const PlanQuestion& question);

/// Throws: BudgetTooSmall when no plan can keep `budget`, which is the whole run's. It names the
/// smallest budget that works for the planner asked for, by modelled times.
void expect_feasible(const Workload& workload, um::Bytes budget, const PlanRequest& request);

}  // namespace spillway
