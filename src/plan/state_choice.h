#pragma once

#include <memory>

#include "prefetch/planner.h"
#include "src/ops/backend.h"
#include "src/plan/budget.h"
#include "src/plan/plans.h"
#include "src/plan/workload.h"
#include "um/bytes.h"

namespace spillway {

/// The steps of a network up to three times: with their state always near; where the request lets
/// it, with state that plans may send far; and the latter with updates on the far side. answer()
/// (plan_question.h) decides which of them runs.
class StateChoice {
 public:
  /// `near` must outlive it. Throws: um::Error when the request wants state far that its planner
  /// leaves near, or updates on the far side where there are none: expect_combinable(),
  /// refuse_far_updates().
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

 private:
  const Workload& near_;
  std::unique_ptr<const Workload> far_;
  std::unique_ptr<const Workload> far_updates_;
  StateRule rule_;
  bool may_be_far_;    // planners are asked for plans that move it
  UpdateRule update_;  // kNear where nothing else is possible
};

}  // namespace spillway
