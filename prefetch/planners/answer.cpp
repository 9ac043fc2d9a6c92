#include "prefetch/planners/answer.h"

#include <chrono>
#include <utility>

#include "prefetch/placement/placed_step.h"
#include "prefetch/profile.h"
#include "prefetch/simulate/simulate.h"
#include "prefetch/verify/verify.h"

namespace spillway::prefetch {

using nlohmann::json;
using um::Bytes;
using um::Nanoseconds;

Plan with_fixed_places(const Planner& planner, const Problem& problem, Plan plan) {
  constexpr int kTries = 5;
  const auto predicted = [&](const Plan& made) {
    return simulate(problem.graph, made, problem.profile).makespan();
  };
  auto use = arena_use(problem.graph, plan);
  if (!use || use->fits()) return plan;
  const Nanoseconds slowest = predicted(plan) * 9 / 8;
  Problem smaller = problem;
  for (int i = 0; i < kTries; ++i) {
    const Bytes missing = um::round_up(use->extent - use->room, problem.page);
    smaller.budget = um::saturating_difference(smaller.budget, missing);
    auto planned = planner.plan(smaller);
    auto* const placed = std::get_if<Plan>(&planned);
    if (placed == nullptr) break;
    placed->budget = problem.budget;
    if (predicted(*placed) > slowest) break;
    use = arena_use(problem.graph, *placed);
    if (use->fits()) return std::move(*placed);
  }
  return plan;
}

Answer answer_with(Plan plan, const std::string& name, const Problem& problem) {
  const auto verdict = verify(problem.graph, plan);
  if (const auto* const violation = std::get_if<Violation>(&verdict)) {
    throw UnsoundPlan{name, violation->reason};
  }
  Timeline timeline = simulate(problem.graph, plan, problem.profile);
  return {.plan = std::move(plan),
          .planning = std::nullopt,
          .peak = std::get<Verified>(verdict).peak,
          .timeline = std::move(timeline)};
}

std::variant<Answer, Infeasible> ask(const Planner& planner, const Problem& problem,
                                     const AskOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  auto planned = planner.plan(problem);
  if (const auto* const refusal = std::get_if<Infeasible>(&planned)) return *refusal;
  Plan plan = std::get<Plan>(std::move(planned));
  if (problem.whole_blocks && options.fixes_places) {
    plan = with_fixed_places(planner, problem, std::move(plan));
  }
  const Nanoseconds planning = std::chrono::steady_clock::now() - begin;
  if (!options.proves) {
    Timeline timeline = simulate(problem.graph, plan, problem.profile);
    return Answer{
        .plan = std::move(plan), .planning = planning, .peak = {}, .timeline = std::move(timeline)};
  }
  const std::string name = "the plan of planner " + plan.planner;
  Answer answer = answer_with(std::move(plan), name, problem);
  answer.planning = planning;
  return answer;
}

json to_json(const Answer& answer, const Problem& problem) {
  const PlanFacts facts = facts_of(answer.plan, problem.graph);
  return {{"planner", answer.plan.planner},
          {"peak_bytes", answer.peak.count()},
          {"arithmetic_seconds", um::seconds(compute_time(problem.profile, answer.plan.runs))},
          {"makespan_seconds", um::seconds(answer.timeline.makespan())},
          {"planning_seconds", um::seconds(answer.planning.value_or(Nanoseconds{0}))},
          {"offloaded_bytes", facts.offloaded.count()},
          {"prefetched_bytes", facts.prefetched.count()},
          {"recomputed_tasks", facts.recomputed_tasks}};
}

}  // namespace spillway::prefetch
