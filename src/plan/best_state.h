#pragma once

#include <optional>
#include <utility>

#include "src/plan/budget_too_small.h"
#include "src/plan/state_choice.h"
#include "src/plan/workload.h"
#include "um/bytes.h"

namespace spillway {

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
