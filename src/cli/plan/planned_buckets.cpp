#include "src/cli/plan/planned_buckets.h"

#include <optional>

#include "src/cli/plan/best_plan.h"
#include "src/plan/bucket_choice.h"
#include "src/plan/budget_too_small.h"

namespace spillway::cli {

prefetch::BucketRule planned_buckets(const PlanSubject& one, const RankFlags& ranks,
                                     um::Bytes budget, const PlanRequest& request) {
  const auto time_of = [&](const prefetch::BucketRule& rule,
                           const prefetch::Planner& planner) -> std::optional<um::Nanoseconds> {
    const PlanRequest own = with_planner(request, planner);
    PlanSubject subject = one.exchanged(ranks.interconnect(), rule, ranks.division());
    subject.choose_state(own);
    try {
      return plan_best(subject, budget, own).timeline.makespan();
    } catch (const BudgetTooSmall&) {
      return std::nullopt;
    }
  };
  return choose_buckets(one.step->graph, ranks.bucket.rule(), *request.planner, time_of);
}

}  // namespace spillway::cli
