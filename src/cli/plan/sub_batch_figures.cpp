#include "src/cli/plan/sub_batch_figures.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <variant>

#include "prefetch/bounds/bounds.h"
#include "prefetch/planner.h"
#include "prefetch/simulate/simulate.h"
#include "prefetch/verify/verify.h"
#include "src/sweep/soundness.h"

namespace spillway::cli {
namespace {

using nlohmann::json;
using um::Bytes;
using um::Nanoseconds;

// Sums over the sub-batches of a batch.
struct Totals {
  Bytes peak;
  Nanoseconds fastest{0};
  Nanoseconds arithmetic{0};
  Nanoseconds makespan{0};
  prefetch::Bounds bounds{};
  std::uint64_t offloaded = 0;
  std::uint64_t prefetched = 0;
  std::uint64_t recomputed = 0;
  std::map<std::string, std::size_t> algorithms;

  void add(const PlannedSubStep& step, const SubBatchPlanner& planner, const std::string& subject) {
    const auto verdict = prefetch::verify(*step.graph, step.plan);
    if (const auto* violation = std::get_if<prefetch::Violation>(&verdict)) {
      throw unsound_plan(step.plan.planner, subject, step.plan.budget, violation->reason);
    }
    peak = std::max(peak, std::get<prefetch::Verified>(verdict).peak);
    add_times(step, planner);
    const prefetch::PlanFacts facts = facts_of(step.plan, *step.graph);
    offloaded += step.times * facts.offloaded.count();
    prefetched += step.times * facts.prefetched.count();
    recomputed += step.times * facts.recomputed_tasks;
    for (const auto& [name, runs] : facts.algorithms) algorithms[name] += step.times * runs;
  }

  void add_times(const PlannedSubStep& step, const SubBatchPlanner& planner) {
    const auto times = static_cast<std::int64_t>(step.times);
    fastest += times * prefetch::fastest_step(*step.profile);
    arithmetic += times * prefetch::compute_time(*step.profile, step.plan.runs);
    makespan += times * prefetch::simulate(*step.graph, step.plan, *step.profile).makespan();
    const prefetch::Bounds own = prefetch::lower_bounds(planner.problem(step));
    bounds.beaumont += times * own.beaumont;
    bounds.offload += times * own.offload;
    bounds.mixed += times * own.mixed;
    bounds.offload_transition += times * own.offload_transition;
    bounds.mixed_transition += times * own.mixed_transition;
  }
};

}  // namespace

json figures_of(std::span<const PlannedSubStep> steps, const SubBatchPlanner& planner,
                const prefetch::NearNeed& need, const std::string& subject, Nanoseconds planning) {
  Totals totals;
  for (const PlannedSubStep& step : steps) totals.add(step, planner, subject);
  const PlannedSubStep& last = steps.back();
  return {{"feasible", true},
          {"planner", last.plan.planner},
          {"profile", last.profile->source},
          {"min_budget_bytes", need.smallest.count()},
          {"resident_bytes", need.resident.count()},
          {"peak_bytes", totals.peak.count()},
          {"compute_seconds", um::seconds(totals.fastest)},
          {"arithmetic_seconds", um::seconds(totals.arithmetic)},
          {"makespan_seconds", um::seconds(totals.makespan)},
          {"bounds", prefetch::to_json(totals.bounds)},
          {"planning_seconds", um::seconds(planning)},
          {"offloaded_bytes", totals.offloaded},
          {"prefetched_bytes", totals.prefetched},
          {"recomputed_tasks", totals.recomputed},
          {"algorithms", totals.algorithms},
          {"tasks", last.graph->tasks.size()},
          {"verified", true}};
}

}  // namespace spillway::cli
