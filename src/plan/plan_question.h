#pragma once

#include "prefetch/planners/answer.h"
#include "prefetch/profile.h"
#include "src/plan/plans.h"
#include "src/plan/state_choice.h"
#include "src/plan/workload.h"
#include "um/bytes.h"

namespace spillway {

/// A question to planning: which of these steps run within a budget, and by which plans.
struct PlanQuestion {
  const StateChoice& choice;
  /// Times of the training step of choice.within(budget), from which the others' follow.
  prefetch::Profile profile;
  um::Bytes budget;  ///< of the whole run
  PlanRequest request;
  bool evaluates = true;  ///< false: its evaluation is not planned, nor its resident need checked
};

/// The fastest plans of a run, proved.
struct PlanAnswer {
  const Workload* workload = nullptr;  ///< which of the choice they are of
  prefetch::Profile profile;           ///< of its training step
  Plans plans;
  prefetch::Answer training;    ///< proof and timeline of the training's
  um::Nanoseconds step{0};      ///< a batch by these plans, as predicted_step() says
  um::Nanoseconds planning{0};  ///< how long all planners took
};

/// Plans the steps with near state, unless that has no room or is not wanted. If these plans wait,
/// or there are none, also plans the steps with state that moves. They count if they are faster by
/// a twentieth: moves cost what no prediction knows. If they are chosen, updates on the far side
/// are tried likewise. Throws: BudgetTooSmall with the smallest budget of all that were refused;
/// um::Error as make_plans() does.
[[nodiscard]] PlanAnswer answer(const PlanQuestion& question);

}  // namespace spillway
