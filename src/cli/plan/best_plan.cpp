#include "src/cli/plan/best_plan.h"

#include <chrono>
#include <utility>
#include <variant>

#include "prefetch/simulate/simulate.h"
#include "prefetch/verify/verify.h"
#include "src/plan/best_state.h"
#include "src/sweep/soundness.h"
#include "um/bytes.h"

namespace spillway::cli {
namespace {

using um::Bytes;
using um::Nanoseconds;

Planned make_plan(const PlanSubject& subject, Bytes budget, const PlanRequest& request) {
  Planned planned;
  const auto begin = std::chrono::steady_clock::now();
  planned.plan = plan_step(*subject.step, subject.profile, budget, request);
  planned.planning = std::chrono::steady_clock::now() - begin;
  const auto verdict = prefetch::verify(subject.step->graph, planned.plan);
  if (const auto* violation = std::get_if<prefetch::Violation>(&verdict)) {
    throw unsound_plan(planned.plan.planner, description(subject), budget, violation->reason);
  }
  planned.peak = std::get<prefetch::Verified>(verdict).peak;
  planned.timeline = prefetch::simulate(subject.step->graph, planned.plan, subject.profile);
  planned.bounds = step_bounds(*subject.step, subject.profile, budget, request);
  return planned;
}

}  // namespace

std::string description(const PlanSubject& subject) {
  return subject.title + (subject.machine ? " on " + subject.machine->name : "");
}

Planned plan_best(PlanSubject& subject, Bytes budget, const PlanRequest& request) {
  if (!subject.state) return make_plan(subject, budget, request);
  Nanoseconds planning{0};
  auto best = plan_best_state(*subject.state, budget, [&](const Workload& workload) {
    subject.use(workload);
    Planned planned = make_plan(subject, budget, request);
    planning += planned.planning;
    const Nanoseconds time = planned.timeline.makespan();
    const Nanoseconds tasks =
        compute_time(subject.profile, prefetch::runs_in_order(subject.step->graph));
    return PlannedState<Planned>{
        .workload = &workload, .time = time, .tasks = tasks, .plans = std::move(planned)};
  });
  subject.use(*best.workload);
  best.plans.planning = planning;
  return std::move(best.plans);
}

}  // namespace spillway::cli
