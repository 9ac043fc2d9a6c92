#include "src/sweep/sweep.h"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/info.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <utility>
#include <variant>

#include "prefetch/bounds/bounds.h"
#include "prefetch/bounds/paleo.h"
#include "prefetch/moves/algorithm_choice.h"
#include "prefetch/planner.h"
#include "prefetch/planners/smallest_budget.h"
#include "prefetch/simulate/simulate.h"
#include "prefetch/verify/verify.h"
#include "src/plan/arena_use.h"
#include "src/sweep/memory_by_run.h"
#include "src/sweep/robustness.h"
#include "um/error.h"

namespace spillway {
namespace {

using prefetch::Infeasible;
using prefetch::Plan;
using prefetch::Problem;
using um::Nanoseconds;

Problem make_problem(const SweepPoint& sweep_point, bool may_recompute, bool whole_blocks) {
  const Scenario& scenario = *sweep_point.scenario;
  return {.graph = scenario.graph(),
          .profile = scenario.profile,
          .budget = scenario.workload->training_budget(sweep_point.budget),
          .page = scenario.workload->page(),
          .chunk = prefetch::chunk_for(scenario.profile.link),
          .whole_blocks = whole_blocks,
          .may_recompute = may_recompute};
}

// The bounds are of all strategies together.
PointFacts sweep_point_facts(const SweepPoint& sweep_point, std::span<const Strategy> strategies,
                             bool whole_blocks) {
  const Scenario& scenario = *sweep_point.scenario;
  const prefetch::NearNeed& need = scenario.need;
  PointFacts facts{.tasks = scenario.graph().tasks.size(),
                   .smallest_budget = need.smallest,
                   .resident = need.resident,
                   .fastest = scenario.fastest};
  if (sweep_point.budget < need.smallest) return facts;
  const bool may_recompute = std::ranges::any_of(strategies, &Strategy::may_recompute);
  const Problem problem = make_problem(sweep_point, may_recompute, whole_blocks);
  facts.fastest_that_fit =
      prefetch::compute_time(scenario.profile, prefetch::fastest_that_fit(problem));
  facts.bounds = prefetch::lower_bounds(problem);
  return facts;
}

PlanOutcome judge(const SweepPoint& sweep_point, const Plan& plan, const SweepOptions& options) {
  const Scenario& scenario = *sweep_point.scenario;
  const prefetch::PlanFacts moved = facts_of(plan, scenario.graph());
  PlanOutcome outcome{.offloaded = moved.offloaded,
                      .prefetched = moved.prefetched,
                      .recomputed_tasks = moved.recomputed_tasks};
  const auto verdict = prefetch::verify(scenario.graph(), plan);
  if (const auto* violation = std::get_if<prefetch::Violation>(&verdict)) {
    outcome.violation = violation->reason;
    return outcome;
  }
  outcome.peak = std::get<prefetch::Verified>(verdict).peak;
  const prefetch::Timeline timeline = prefetch::simulate(scenario.graph(), plan, scenario.profile);
  outcome.makespan = timeline.makespan();
  // Where pages move on demand, neither the plan nor the analytic model says what is near when.
  if (plan.residency == prefetch::Residency::kOnDemand) return outcome;
  const prefetch::PaleoStrategy strategy = prefetch::paleo_strategy(plan.planner);
  outcome.paleo = prefetch::paleo_step(scenario.graph(), scenario.profile, plan, strategy).makespan;
  if (options.with_memory) outcome.memory = memory_by_run(scenario.graph(), plan, timeline);
  if (options.noise > 0) {
    outcome.robustness = measure_robustness(scenario.graph(), plan, scenario.profile, options.noise,
                                            options.noise_draws);
  }
  return outcome;
}

PointKey key_of(const SweepPoint& sweep_point, const Strategy& strategy) {
  const Scenario& scenario = *sweep_point.scenario;
  return {.net = scenario.net,
          .batch = scenario.batch,
          .machine = scenario.machine,
          .precision = scenario.precision,
          .link_factor = scenario.link_factor,
          .position = sweep_point.position,
          .budget = sweep_point.budget,
          .planner = std::string{strategy.planner->name()},
          .may_recompute = strategy.may_recompute};
}

// What is said where no plan of any planner keeps the budget.
Infeasible any_plan_needs(const SweepPoint& sweep_point) {
  const Workload& workload = *sweep_point.scenario->workload;
  return {.task = workload.need().largest_task,
          .smallest_budget = workload.training_budget(workload.need().smallest)};
}

// Of a whole run, whose other steps have needs, too.
um::Bytes smallest_budget(const SweepPoint& sweep_point, const prefetch::Planner& planner,
                          const Problem& problem, const Infeasible& refusal) {
  const Workload& workload = *sweep_point.scenario->workload;
  const Infeasible least = prefetch::smallest_budget(planner, problem, refusal);
  return std::max(workload.run_budget(least.smallest_budget), workload.need().smallest);
}

Point evaluate(const SweepPoint& sweep_point, const Strategy& strategy, const PointFacts& facts,
               const SweepOptions& options) {
  Point point{.key = key_of(sweep_point, strategy), .facts = facts};
  const Problem problem = make_problem(sweep_point, strategy.may_recompute, options.whole_blocks);
  try {
    if (!facts.bounds) {
      point.smallest_budget =
          smallest_budget(sweep_point, *strategy.planner, problem, any_plan_needs(sweep_point));
      return point;
    }
    const auto begin = std::chrono::steady_clock::now();
    auto planned = strategy.planner->plan(problem);
    if (auto* const plan = std::get_if<Plan>(&planned); plan != nullptr && options.whole_blocks) {
      *plan = with_fixed_places(*strategy.planner, problem, std::move(*plan));
    }
    const Nanoseconds planning = std::chrono::steady_clock::now() - begin;
    if (const auto* const reason = std::get_if<Infeasible>(&planned)) {
      point.smallest_budget = smallest_budget(sweep_point, *strategy.planner, problem, *reason);
      return point;
    }
    point.outcome = judge(sweep_point, std::get<Plan>(planned), options);
    point.outcome->planning = planning;
  } catch (const prefetch::TooManyTasks& refusal) {
    point.refusal = refusal.what();
  }
  return point;
}

// Large networks take longer: what time is left is estimated from this.
double work_in(const SweepPoint& sweep_point) {
  return static_cast<double>(sweep_point.scenario->graph().tasks.size());
}

// Adds up what is done, and tells.
class ProgressReport {
 public:
  ProgressReport(std::span<const SweepPoint> sweep_points, const SweepOptions& options)
      : options_{options} {
    for (const SweepPoint& sweep_point : sweep_points) total_ += work_in(sweep_point);
  }

  void finished(const SweepPoint& sweep_point) {
    if (!options_.on_progress) return;
    const std::scoped_lock lock{mutex_};
    done_ += work_in(sweep_point);
    options_.on_progress(
        {.done = done_ / total_,
         .latest = sweep_point.scenario->net + " on " + sweep_point.scenario->machine});
  }

 private:
  const SweepOptions& options_;
  std::mutex mutex_;
  double total_ = 0;
  double done_ = 0;
};

}  // namespace

std::vector<Point> evaluate(const SweepPoint& sweep_point, std::span<const Strategy> strategies,
                            const SweepOptions& options) {
  const PointFacts facts = sweep_point_facts(sweep_point, strategies, options.whole_blocks);
  std::vector<Point> points;
  points.reserve(strategies.size());
  for (const Strategy& strategy : strategies) {
    points.push_back(evaluate(sweep_point, strategy, facts, options));
  }
  return points;
}

std::vector<Point> sweep(std::span<const SweepPoint> sweep_points,
                         std::span<const Strategy> strategies, const SweepOptions& options,
                         const std::stop_token& stop) {
  namespace tbb = oneapi::tbb;
  std::vector<std::vector<Point>> by_sweep_point(sweep_points.size());
  ProgressReport progress{sweep_points, options};
  const auto evaluate_one = [&](std::size_t i) {
    if (stop.stop_requested()) return;
    // Isolated: a planner that waits for its own parallel work must not take up another point,
    // whose time would count as its own.
    tbb::this_task_arena::isolate(
        [&] { by_sweep_point[i] = evaluate(sweep_points[i], strategies, options); });
    progress.finished(sweep_points[i]);
  };
  const int usual = tbb::info::default_concurrency();
  const int threads = options.threads > 0 ? options.threads : usual;
  const tbb::global_control allowed{tbb::global_control::max_allowed_parallelism,
                                    static_cast<std::size_t>(std::max(threads, usual))};
  tbb::task_arena arena{threads};
  arena.execute([&] {
    const tbb::blocked_range<std::size_t> all{0, sweep_points.size(), 1};
    tbb::parallel_for(
        all,
        [&](const tbb::blocked_range<std::size_t>& range) {
          for (std::size_t i = range.begin(); i < range.end(); ++i) evaluate_one(i);
        },
        tbb::simple_partitioner{});
  });
  std::vector<Point> points;
  for (std::vector<Point>& of_sweep_point : by_sweep_point) {
    std::ranges::move(of_sweep_point, std::back_inserter(points));
  }
  return points;
}

}  // namespace spillway
