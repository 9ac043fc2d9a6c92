#include "src/sweep/sweep.h"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/info.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <mutex>
#include <numeric>
#include <utility>
#include <vector>

#include "prefetch/bounds/bounds.h"
#include "prefetch/bounds/paleo.h"
#include "prefetch/moves/algorithm_choice.h"
#include "prefetch/plan.h"
#include "prefetch/planner.h"
#include "prefetch/planners/answer.h"
#include "prefetch/profile.h"
#include "prefetch/simulate/simulate.h"
#include "prefetch/simulate/timeline.h"
#include "prefetch/task_graph.h"
#include "src/plan/plans.h"
#include "um/bytes.h"

namespace spillway {
namespace {

using nlohmann::json;
using prefetch::Answer;
using prefetch::Plan;
using prefetch::Problem;
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
              {"makespan_seconds", seconds(outcome.makespan)},
              {"verified", true}};
  if (outcome.paleo) object["paleo_seconds"] = seconds(*outcome.paleo);
  if (outcome.made_for) object["made_for_budget_bytes"] = outcome.made_for->count();
  if (outcome.robustness) {
    object["noise_loss"] = outcome.robustness->loss;
    object["noise_peak_bytes"] = outcome.robustness->peak.count();
  }
  for (const um::Bytes near : outcome.memory) object["memory_bytes"].push_back(near.count());
  return object;
}

// Makespan over what the runs themselves take.
double overhead(const prefetch::Timeline& timeline) {
  um::Nanoseconds arithmetic{0};
  for (const prefetch::Interval& run : timeline.runs) arithmetic += run.end - run.begin;
  return um::seconds(timeline.makespan()) / std::max(1e-9, um::seconds(arithmetic));
}

// Executes `plan` on the simulator `draws` times, each task's time multiplied by a number drawn
// from [1 - noise, 1 + noise]; seeds are 1, 2, … Requires: a plan that verifies and does not page
// on demand; at least one draw.
Robustness measure_robustness(const prefetch::TaskGraph& graph, const prefetch::Plan& plan,
                              const prefetch::Profile& profile, double noise, int draws) {
  const double undisturbed = overhead(prefetch::simulate(plan, profile));
  Robustness robustness;
  double sum = 0;
  for (int draw = 1; draw <= draws; ++draw) {
    const prefetch::Timeline timeline = prefetch::simulate(
        plan, profile, {.noise = noise, .seed = static_cast<std::uint64_t>(draw)});
    sum += overhead(timeline);
    for (const prefetch::MemorySample& sample : prefetch::memory_curve(graph, plan, timeline)) {
      robustness.peak = std::max(robustness.peak, sample.near);
    }
  }
  robustness.loss = sum / draws / undisturbed - 1;
  return robustness;
}

// The most near memory in use while each run of `plan` is under way, as `timeline` says; for a run
// that takes no time, at its moment. Requires: as prefetch::memory_curve.
std::vector<um::Bytes> memory_by_run(const prefetch::TaskGraph& graph, const prefetch::Plan& plan,
                                     const prefetch::Timeline& timeline) {
  const std::vector<prefetch::MemorySample> curve = prefetch::memory_curve(graph, plan, timeline);
  std::vector<um::Bytes> max;
  std::size_t at = 0;  // the last sample that is not after the run's begin
  for (const prefetch::Interval& run : timeline.runs) {
    while (at + 1 < curve.size() && curve[at + 1].time <= run.begin) ++at;
    um::Bytes here = curve[at].near;
    for (std::size_t i = at + 1; i < curve.size() && curve[i].time < run.end; ++i) {
      here = std::max(here, curve[i].near);
    }
    max.push_back(here);
  }
  return max;
}

PlanRequest request_of(const Strategy& strategy, bool whole_blocks) {
  return {.memory = whole_blocks ? MemoryMode::kCopy : MemoryMode::kManaged,
          .planner = strategy.planner,
          .may_recompute = strategy.may_recompute};
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
  const Problem problem =
      make_problem(scenario.workload->training_to_plan(), scenario.profile, sweep_point.budget,
                   request_of({.may_recompute = may_recompute}, whole_blocks));
  facts.fastest_that_fit =
      prefetch::compute_time(scenario.profile, prefetch::fastest_that_fit(problem));
  facts.bounds = prefetch::lower_bounds(problem);
  return facts;
}

PlanOutcome outcome_of(const SweepPoint& sweep_point, const Answer& answer,
                       const SweepOptions& options) {
  const Scenario& scenario = *sweep_point.scenario;
  const Plan& plan = answer.plan;
  const prefetch::PlanFacts moved = facts_of(plan, scenario.graph());
  PlanOutcome outcome{.makespan = answer.timeline.makespan(),
                      .peak = answer.peak,
                      .offloaded = moved.offloaded,
                      .prefetched = moved.prefetched,
                      .recomputed_tasks = moved.recomputed_tasks,
                      .planning = answer.planning.value()};
  // Where pages move on demand, neither the plan nor the analytic model says what is near when.
  if (plan.residency == prefetch::Residency::kOnDemand) return outcome;
  const prefetch::PaleoStrategy strategy = prefetch::paleo_strategy(plan.planner);
  outcome.paleo = prefetch::paleo_step(scenario.graph(), scenario.profile, plan, strategy).makespan;
  if (options.with_memory) outcome.memory = memory_by_run(scenario.graph(), plan, answer.timeline);
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

Point evaluate(const SweepPoint& sweep_point, const Strategy& strategy, const PointFacts& facts,
               const SweepOptions& options) {
  Point point{.key = key_of(sweep_point, strategy), .facts = facts};
  const Scenario& scenario = *sweep_point.scenario;
  try {
    const Answer answer = plan_step(scenario.workload->training_to_plan(), scenario.profile,
                                    sweep_point.budget, request_of(strategy, options.whole_blocks));
    point.outcome = outcome_of(sweep_point, answer, options);
  } catch (const BudgetTooSmall& refusal) {
    point.smallest_budget = refusal.smallest();
  } catch (const prefetch::TooManyTasks& refusal) {
    point.refusal = refusal.what();
  } catch (const prefetch::UnsoundPlan& unsound) {
    const prefetch::UnsoundPlan named{
        "the plan of planner " + point.key.planner + " for " + point.key.net + " at batch " +
            std::to_string(point.key.batch) + " on " + point.key.machine + " within " +
            um::to_string(point.key.budget),
        unsound.reason()};
    point.refusal = named.what();
    point.is_unsound = true;
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

// Has each point of `joint` take the plan of a smaller budget of the same scenario where that is
// shorter. `points`: by sweep point and strategy; empty where the sweep was stopped.
void take_plans_of_less_room(std::span<const SweepPoint> sweep_points,
                             std::span<const Strategy> strategies,
                             std::vector<std::vector<Point>>& points) {
  std::vector<std::size_t> by_budget(sweep_points.size());
  std::iota(by_budget.begin(), by_budget.end(), 0U);
  std::ranges::stable_sort(by_budget, {}, [&](std::size_t i) { return sweep_points[i].budget; });
  for (std::size_t s = 0; s < strategies.size(); ++s) {
    if (strategies[s].planner->name() != "joint") continue;
    std::map<const Scenario*, const Point*> shortest;
    for (const std::size_t i : by_budget) {
      if (points[i].empty() || !points[i][s].outcome) continue;
      Point& point = points[i][s];
      const Point*& known = shortest[sweep_points[i].scenario];
      if (known != nullptr && known->outcome->makespan < point.outcome->makespan) {
        const um::Nanoseconds planning = point.outcome->planning;
        const um::Bytes made_for = known->outcome->made_for.value_or(known->key.budget);
        point.outcome = known->outcome;
        point.outcome->planning = planning;
        point.outcome->made_for = made_for;
      }
      known = &point;
    }
  }
}

}  // namespace

std::optional<double> slowdown(const Point& point) {
  if (!point.outcome) return std::nullopt;
  return um::seconds(point.outcome->makespan) / um::seconds(point.facts.fastest);
}

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
  take_plans_of_less_room(sweep_points, strategies, by_sweep_point);
  std::vector<Point> points;
  for (std::vector<Point>& of_sweep_point : by_sweep_point) {
    std::ranges::move(of_sweep_point, std::back_inserter(points));
  }
  return points;
}

}  // namespace spillway
