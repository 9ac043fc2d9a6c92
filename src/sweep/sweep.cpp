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

#include "prefetch/algorithm_choice.h"
#include "prefetch/bounds.h"
#include "prefetch/paleo.h"
#include "prefetch/simulate.h"
#include "prefetch/verify.h"
#include "src/plan_facts.h"
#include "src/sweep/memory_by_run.h"
#include "src/sweep/robustness.h"
#include "um/error.h"

namespace spillway {
namespace {

using prefetch::Infeasible;
using prefetch::Plan;
using prefetch::Problem;
using um::Nanoseconds;

Problem make_problem(const Cell& cell, bool may_recompute, bool whole_blocks) {
  const Situation& situation = *cell.situation;
  return {.graph = situation.graph(),
          .profile = situation.profile,
          .budget = situation.workload->training_budget(cell.budget),
          .page = situation.workload->page(),
          .chunk = prefetch::chunk_for(situation.profile.link),
          .whole_blocks = whole_blocks,
          .may_recompute = may_recompute};
}

Nanoseconds all_fastest(const prefetch::Profile& profile) {
  Nanoseconds sum{0};
  for (const std::vector<Nanoseconds>& algorithms : profile.durations) {
    sum += *std::ranges::min_element(algorithms);
  }
  return sum;
}

// The bounds are of all strategies together.
PointFacts cell_facts(const Cell& cell, std::span<const Strategy> strategies, bool whole_blocks) {
  const Situation& situation = *cell.situation;
  const prefetch::NearNeed& need = situation.workload->need();
  PointFacts facts{.tasks = situation.graph().tasks.size(),
                   .smallest_budget = need.smallest,
                   .resident = need.resident,
                   .fastest = all_fastest(situation.profile)};
  if (cell.budget < need.smallest) return facts;
  const bool may_recompute = std::ranges::any_of(strategies, &Strategy::may_recompute);
  const Problem problem = make_problem(cell, may_recompute, whole_blocks);
  facts.fastest_that_fit =
      prefetch::compute_time(situation.profile, prefetch::fastest_that_fit(problem));
  facts.bounds = prefetch::lower_bounds(problem);
  return facts;
}

PlanOutcome judge(const Cell& cell, const Plan& plan, const SweepOptions& options) {
  const Situation& situation = *cell.situation;
  const PlanFacts moved = facts_of(plan, situation.graph());
  PlanOutcome outcome{.offloaded = moved.offloaded,
                      .prefetched = moved.prefetched,
                      .recomputed_tasks = moved.recomputed_tasks};
  const auto verdict = prefetch::verify(situation.graph(), plan);
  if (const auto* violation = std::get_if<prefetch::Violation>(&verdict)) {
    outcome.violation = violation->reason;
    return outcome;
  }
  outcome.peak = std::get<prefetch::Verified>(verdict).peak;
  const prefetch::Timeline timeline =
      prefetch::simulate(situation.graph(), plan, situation.profile);
  outcome.makespan = timeline.makespan();
  // Where pages move on demand, neither the plan nor the analytic model says what is near when.
  if (plan.residency == prefetch::Residency::kOnDemand) return outcome;
  const prefetch::PaleoStrategy strategy = prefetch::paleo_strategy(plan.planner);
  outcome.paleo =
      prefetch::paleo_step(situation.graph(), situation.profile, plan, strategy).makespan;
  if (options.with_memory) outcome.memory = memory_by_run(situation.graph(), plan, timeline);
  if (options.noise > 0) {
    outcome.robustness = measure_robustness(situation.graph(), plan, situation.profile,
                                            options.noise, options.noise_draws);
  }
  return outcome;
}

PointKey key_of(const Cell& cell, const Strategy& strategy) {
  const Situation& situation = *cell.situation;
  return {.net = situation.net,
          .batch = situation.batch,
          .machine = situation.machine,
          .link_factor = situation.link_factor,
          .position = cell.position,
          .budget = cell.budget,
          .planner = std::string{strategy.planner->name()},
          .may_recompute = strategy.may_recompute};
}

Point evaluate(const Cell& cell, const Strategy& strategy, const PointFacts& facts,
               const SweepOptions& options) {
  Point point{.key = key_of(cell, strategy), .facts = facts};
  point.smallest_budget = facts.smallest_budget;
  if (!facts.bounds) return point;
  const Problem problem = make_problem(cell, strategy.may_recompute, options.whole_blocks);
  const auto begin = std::chrono::steady_clock::now();
  const auto planned = strategy.planner->plan(problem);
  const Nanoseconds planning = std::chrono::steady_clock::now() - begin;
  if (const auto* const reason = std::get_if<Infeasible>(&planned)) {
    point.smallest_budget = cell.situation->workload->run_budget(reason->smallest_budget);
    return point;
  }
  point.outcome = judge(cell, std::get<Plan>(planned), options);
  point.outcome->planning = planning;
  return point;
}

// Large networks take longer: what time is left is estimated from this.
double work_in(const Cell& cell) {
  return static_cast<double>(cell.situation->graph().tasks.size());
}

// Adds up what is done, and tells.
class ProgressReport {
 public:
  ProgressReport(std::span<const Cell> cells, const SweepOptions& options) : options_{options} {
    for (const Cell& cell : cells) total_ += work_in(cell);
  }

  void finished(const Cell& cell) {
    if (!options_.on_progress) return;
    const std::scoped_lock lock{mutex_};
    done_ += work_in(cell);
    options_.on_progress(
        {.done = done_ / total_, .latest = cell.situation->net + " on " + cell.situation->machine});
  }

 private:
  const SweepOptions& options_;
  std::mutex mutex_;
  double total_ = 0;
  double done_ = 0;
};

}  // namespace

std::vector<Point> evaluate(const Cell& cell, std::span<const Strategy> strategies,
                            const SweepOptions& options) {
  const PointFacts facts = cell_facts(cell, strategies, options.whole_blocks);
  std::vector<Point> points;
  points.reserve(strategies.size());
  for (const Strategy& strategy : strategies) {
    points.push_back(evaluate(cell, strategy, facts, options));
  }
  return points;
}

void time_slowest_alone(std::span<const Cell> cells, const Strategy& strategy,
                        std::span<Point> points, std::size_t tasks, std::size_t most) {
  um::expects(points.size() <= cells.size(), "a cell for each point");
  std::vector<bool> is_timed(points.size(), false);
  const auto planning = [&](std::size_t i) {
    const bool counts = points[i].outcome && points[i].facts.tasks <= tasks;
    return counts ? points[i].outcome->planning : Nanoseconds{0};
  };
  for (std::size_t n = 0; n < most && !points.empty(); ++n) {
    std::size_t slowest = 0;
    for (std::size_t i = 1; i < points.size(); ++i) {
      if (planning(i) > planning(slowest)) slowest = i;
    }
    if (is_timed[slowest] || planning(slowest) == Nanoseconds{0}) return;
    const Cell& cell = cells[slowest];
    const Point again = evaluate(cell, strategy, points[slowest].facts, {});
    points[slowest].outcome->planning = again.outcome->planning;
    is_timed[slowest] = true;
  }
}

std::vector<Point> sweep(std::span<const Cell> cells, std::span<const Strategy> strategies,
                         const SweepOptions& options, const std::atomic<bool>& stop) {
  namespace tbb = oneapi::tbb;
  std::vector<std::vector<Point>> by_cell(cells.size());
  ProgressReport progress{cells, options};
  const auto evaluate_one = [&](std::size_t i) {
    if (stop) return;
    // Isolated: a planner that waits for its own parallel work must not take up another cell, whose
    // time would count as its own.
    tbb::this_task_arena::isolate([&] { by_cell[i] = evaluate(cells[i], strategies, options); });
    progress.finished(cells[i]);
  };
  const int usual = tbb::info::default_concurrency();
  const int threads = options.threads > 0 ? options.threads : usual;
  const tbb::global_control allowed{tbb::global_control::max_allowed_parallelism,
                                    static_cast<std::size_t>(std::max(threads, usual))};
  tbb::task_arena arena{threads};
  arena.execute([&] {
    const tbb::blocked_range<std::size_t> all{0, cells.size(), 1};
    tbb::parallel_for(
        all,
        [&](const tbb::blocked_range<std::size_t>& range) {
          for (std::size_t i = range.begin(); i < range.end(); ++i) evaluate_one(i);
        },
        tbb::simple_partitioner{});
  });
  std::vector<Point> points;
  for (std::vector<Point>& of_cell : by_cell) {
    std::ranges::move(of_cell, std::back_inserter(points));
  }
  return points;
}

}  // namespace spillway
