#include "src/sweep/sweep_json.h"

#include "prefetch/bounds/bounds.h"

namespace spillway {
namespace {

using nlohmann::json;
using um::seconds;

json bounds_json(const Point& point) {
  return point.facts.bounds ? to_json(*point.facts.bounds) : json{};
}

json outcome_json(const PlanOutcome& outcome) {
  json object{{"peak_bytes", outcome.peak.count()},
              {"offloaded_bytes", outcome.offloaded.count()},
              {"prefetched_bytes", outcome.prefetched.count()},
              {"recomputed_tasks", outcome.recomputed_tasks},
              {"planning_seconds", seconds(outcome.planning)},
              {"verified", outcome.violation.empty()}};
  if (outcome.makespan) object["makespan_seconds"] = seconds(*outcome.makespan);
  if (outcome.paleo) object["paleo_seconds"] = seconds(*outcome.paleo);
  if (!outcome.violation.empty()) object["violation"] = outcome.violation;
  if (outcome.robustness) {
    object["noise_loss"] = outcome.robustness->loss;
    object["noise_peak_bytes"] = outcome.robustness->peak.count();
  }
  for (const um::Bytes near : outcome.memory) object["memory_bytes"].push_back(near.count());
  return object;
}

}  // namespace

json to_json(const Point& point) {
  json object{{"net", point.key.net},
              {"batch", point.key.batch},
              {"machine", point.key.machine},
              {"precision", point.key.precision},
              {"link_factor", point.key.link_factor},
              {"p", point.key.position},
              {"budget_bytes", point.key.budget.count()},
              {"min_budget_bytes", point.facts.smallest_budget.count()},
              {"resident_bytes", point.facts.resident.count()},
              {"tasks", point.facts.tasks},
              {"planner", point.key.planner},
              {"recompute", point.key.may_recompute},
              {"feasible", point.outcome.has_value()},
              {"compute_seconds", seconds(point.facts.fastest)},
              {"compute_that_fits_seconds", seconds(point.facts.fastest_that_fit)},
              {"bounds", bounds_json(point)},
              {"makespan_seconds", nullptr}};
  if (point.outcome) {
    object.update(outcome_json(*point.outcome));
  } else if (!point.refusal.empty()) {
    object["refusal"] = point.refusal;
  } else {
    object["smallest_budget_bytes"] = point.smallest_budget.count();
  }
  return object;
}

json to_json(std::span<const Point> points) {
  json array = json::array();
  for (const Point& point : points) array.push_back(to_json(point));
  return array;
}

}  // namespace spillway
