#pragma once

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "prefetch/plan.h"
#include "prefetch/planner.h"
#include "prefetch/profile.h"
#include "src/ops/backend.h"
#include "src/plan/budget.h"
#include "src/plan/plans.h"
#include "src/plan/workload.h"
#include "um/bytes.h"

namespace spillway {

/// The steps of a network up to three times: with their state always near; where the request lets
/// it, with state that plans may send far; and the latter with updates on the far side. Which of
/// them runs is decided here.
class StateChoice {
 public:
  /// `near` must outlive it. Throws: um::Error when the request wants state far that its planner
  /// leaves near, or updates on the far side where there are none.
  StateChoice(const Workload& near, const SizeModel& size_model, const PlanRequest& request);

  [[nodiscard]] const Workload& near() const { return near_; }
  /// The one whose state moves, whatever is asked for: a plan in a file may be of it.
  [[nodiscard]] const Workload& far() const { return *far_; }
  /// The one that updates on the far side, likewise; null where there is none.
  [[nodiscard]] const Workload* far_updates() const { return far_updates_.get(); }

  /// Whether plans may have updates on the far side.
  [[nodiscard]] bool may_update_far() const { return update_ != UpdateRule::kNear; }

  /// What budgets are relative to: the need of a run that moves nothing, the smallest budget of
  /// both.
  [[nodiscard]] prefetch::NearNeed need() const;

  /// The one to measure, and to plan first, within `budget` of the whole run: with its state near,
  /// unless that has no room or is not wanted.
  [[nodiscard]] const Workload& within(um::Bytes budget) const;
  /// The one to plan, too, where plans of within() are slow, or there are none; null where there is
  /// no choice.
  [[nodiscard]] const Workload* other(um::Bytes budget) const;

  /// The one to plan, too, where plans of `planned` are slow: its updates on the far side. Null
  /// where there is no choice.
  [[nodiscard]] const Workload* with_other_updates(const Workload& planned) const;

  /// Plans within `budget`, and what they are plans of.
  struct Outcome {
    const Workload* workload = nullptr;
    std::vector<prefetch::Profile> profiles;  ///< of its training steps
    Plans plans;
  };
  /// The fastest plans within `budget` as plan_best_state() chooses, where `profiles` are those of
  /// the workload within(`budget`). Throws: BudgetTooSmall; um::Error as make_plans() does.
  [[nodiscard]] Outcome plan(std::vector<prefetch::Profile> profiles, um::Bytes budget,
                             const PlanRequest& request) const;

 private:
  const Workload& near_;
  std::unique_ptr<const Workload> far_;
  std::unique_ptr<const Workload> far_updates_;
  StateRule rule_;
  bool may_be_far_;    // planners are asked for plans that move it
  UpdateRule update_;  // kNear where nothing else is possible
};

/// Throws: um::Error when the request wants state far, which the sub-steps of a batch that is cut
/// leave near.
void expect_whole_batch(const PlanRequest& request);
/// Throws: um::Error when the request wants updates on the far side, which exchange no gradients.
void expect_near_updates(const PlanRequest& request);

/// True when plans that take `near` and `tasks` of it, all without a wait, leave so much to gain
/// that state that moves is worth a plan.
[[nodiscard]] bool may_gain_by_far_state(um::Nanoseconds near, um::Nanoseconds tasks);
/// True when plans that move state, and take `far`, are enough faster than `near`.
[[nodiscard]] bool gains_by_far_state(um::Nanoseconds near, um::Nanoseconds far);

/// One of the workloads of a StateChoice, planned.
template <typename PlansOfIt>
struct PlannedState {
  const Workload* workload = nullptr;
  um::Nanoseconds time{0};   ///< by its plans
  um::Nanoseconds tasks{0};  ///< the same without a wait, each task once
  PlansOfIt plans;
};

/// Plans the workload within(`budget`); where its plans are slow, or there are none, the other one,
/// too, which counts where it is faster by a twentieth: its moves cost what no prediction knows.
/// Where that one is chosen, updates on the far side likewise. `plan(workload)` returns a
/// PlannedState or throws BudgetTooSmall, as this does where no workload has plans.
template <typename Plan>
auto plan_best_state(const StateChoice& choice, um::Bytes budget, const Plan& plan) {
  using Planned = decltype(plan(choice.near()));
  std::optional<BudgetTooSmall> refusal;  // of the smallest budget of those that were refused
  const auto attempt = [&](const Workload& workload) -> std::optional<Planned> {
    try {
      return plan(workload);
    } catch (const BudgetTooSmall& complaint) {
      if (!refusal || complaint.smallest() < refusal->smallest()) refusal.emplace(complaint);
      return std::nullopt;
    }
  };
  std::optional<Planned> best = attempt(choice.within(budget));
  const auto try_instead = [&](const Workload* other) {
    if (other == nullptr || (best && !may_gain_by_far_state(best->time, best->tasks))) return;
    std::optional<Planned> far = attempt(*other);
    if (far && (!best || gains_by_far_state(best->time, far->time))) best = std::move(far);
  };
  try_instead(choice.other(budget));
  if (!best) throw BudgetTooSmall{*refusal};
  try_instead(choice.with_other_updates(*best->workload));
  return *std::move(best);
}

}  // namespace spillway
