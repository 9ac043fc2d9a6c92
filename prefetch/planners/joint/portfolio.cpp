#include "prefetch/planners/joint/portfolio.h"

#include <tbb/parallel_for.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "prefetch/bounds/bounds.h"
#include "um/error.h"

namespace spillway::prefetch {

Portfolio::Portfolio(const Problem& problem, std::span<const StartingStrategy> strategies)
    : problem_{problem}, strategies_{strategies} {}

bool Portfolio::is_allowed(const Plan& plan) const {
  if (plan.residency != Residency::kPlanned) return false;
  if (problem_.whole_blocks && !moves_whole_blocks(plan, problem_.graph)) return false;
  return problem_.may_recompute || std::ranges::none_of(plan.runs, &TaskRun::is_recomputation);
}

std::optional<EvaluatedPlan> Portfolio::shorter(um::Nanoseconds limit) const {
  if (!problem_.graph.far_updates.empty()) return std::nullopt;  // most know none
  const std::size_t tasks = problem_.graph.tasks.size();
  const auto is_asked = [tasks](const StartingStrategy& each) { return tasks <= each.max_tasks; };
  if (std::ranges::none_of(strategies_, is_asked)) return std::nullopt;
  const Bounds bounds = lower_bounds(problem_);
  std::vector<std::optional<EvaluatedPlan>> found(strategies_.size());
  tbb::parallel_for(std::size_t{0}, strategies_.size(), [&](std::size_t i) {
    const StartingStrategy& strategy = strategies_[i];
    const bool recomputes = strategy.recomputes && problem_.may_recompute;
    const um::Nanoseconds least = recomputes ? bounds.mixed_transition : bounds.offload_transition;
    if (least < limit && is_asked(strategy)) found[i] = plan_by(strategy);
  });
  std::optional<EvaluatedPlan> shortest;
  for (std::optional<EvaluatedPlan>& each : found) {
    if (!each || each->makespan >= (shortest ? shortest->makespan : limit)) continue;
    shortest = std::move(each);
  }
  return shortest;
}

std::optional<EvaluatedPlan> Portfolio::plan_by(const StartingStrategy& strategy) const {
  try {
    auto result = strategy.plan(problem_);
    auto* const plan = std::get_if<Plan>(&result);
    if (plan == nullptr || !is_allowed(*plan)) return std::nullopt;
    return evaluated(problem_, std::move(*plan));
  } catch (const um::ContractError&) {
    return std::nullopt;  // a bug of that strategy, which must not be joint's
  }
}

}  // namespace spillway::prefetch
