#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "prefetch/bounds/bounds.h"
#include "prefetch/planner.h"
#include "src/sweep/scenario.h"
#include "um/bytes.h"

namespace spillway {

/// A planner, and whether it may recompute.
struct Strategy {
  const prefetch::Planner* planner = nullptr;
  bool may_recompute = true;
};

/// What was asked: a strategy under a budget in a scenario.
struct PointKey {
  std::string net;
  std::size_t batch = 0;
  std::string machine;
  std::string precision;  ///< of the machine: "fp32", "tf32" or "bf16"
  double link_factor = 1;
  std::size_t position = 0;  ///< of the budget in its list: "p"
  um::Bytes budget;
  std::string planner;
  bool may_recompute = true;
};

/// What is the same for all strategies that are compared.
struct PointFacts {
  std::size_t tasks = 0;
  um::Bytes smallest_budget;  ///< any plan's
  um::Bytes resident;         ///< what a run that moves nothing needs
  /// All tasks with their fastest algorithms, one after another: a step with room for everything,
  /// and the common denominator of all ratios.
  um::Nanoseconds fastest{0};
  /// The same with each task's fastest algorithm that fits in the budget when all else is away.
  um::Nanoseconds fastest_that_fit{0};
  /// Of every plan under this budget, recomputing where one of the strategies may; not there where
  /// none is feasible.
  std::optional<prefetch::Bounds> bounds;
};

/// How a plan does when tasks do not take the time they should.
struct Robustness {
  /// How much longer than predicted the step is, beside its own arithmetic: the mean over draws of
  /// (makespan / arithmetic) over the same without noise, less one.
  double loss = 0;
  um::Bytes peak;  ///< near memory in use in any of the draws
};

/// What a strategy made of it.
struct PlanOutcome {
  um::Nanoseconds makespan{0};  ///< simulated
  um::Bytes peak;               ///< proved, under any timing
  um::Bytes offloaded;
  um::Bytes prefetched;
  std::size_t recomputed_tasks = 0;
  /// By OOC-Paleo's analytic model, of the strategy closest to the planner's; not there for plans
  /// that page on demand.
  std::optional<um::Nanoseconds> paleo;
  um::Nanoseconds planning{0};
  std::optional<Robustness> robustness;
  std::vector<um::Bytes> memory;  ///< by run, where it was asked for
  /// The budget that the plan was made for, where that is a smaller one of the same sweep.
  std::optional<um::Bytes> made_for{};
};

struct Point {
  PointKey key;
  PointFacts facts;
  std::optional<PlanOutcome> outcome;  ///< not there: the strategy has no plan for this budget
  /// Where there is no outcome: the smallest budget that works for this strategy.
  um::Bytes smallest_budget;
  /// Why the strategy has no plan whatever the budget, or one that must not run; empty: a larger
  /// budget works.
  std::string refusal;
  bool is_unsound = false;  ///< the planner made a plan that must not run, as `refusal` says
};

/// Returns the makespan over the time of a step with room for everything; nullopt without a plan.
[[nodiscard]] std::optional<double> slowdown(const Point& point);

/// All there is to say about a point; `null` where there is nothing, such as the makespan of a
/// budget that is too small.
[[nodiscard]] nlohmann::json to_json(const Point& point);
[[nodiscard]] nlohmann::json to_json(std::span<const Point> points);

/// How far a sweep is.
struct SweepProgress {
  double done = 0;     ///< part of the work, from 0 to 1
  std::string latest;  ///< what was finished last, for people
};

struct SweepOptions {
  int threads = 0;            ///< 0: one for each processor
  bool whole_blocks = false;  ///< plans for explicit copies
  double noise = 0;  ///< above 0: also execute each plan with so much noise, `noise_draws` times
  int noise_draws = 5;
  bool with_memory = false;  ///< keep how much near memory each run of a plan meets
  /// Called after each point of the sweep, by one thread at a time; may be empty.
  std::function<void(const SweepProgress&)> on_progress;
};

/// Plans each sweep point with each strategy, verifies and simulates the plans. Sweep points are
/// evaluated in parallel. Results come by sweep point, then by strategy, and do not depend on the
/// number of threads, planning times aside. A plan of `joint` counts for larger budgets, too, so
/// that more room never makes its step longer; what other strategies plan is told as it is. When
/// `stop` is requested, no further sweep point begins, and those that did not begin are left out.
/// Throws: what a planner throws besides prefetch::TooManyTasks and prefetch::UnsoundPlan, which
/// the points say.
[[nodiscard]] std::vector<Point> sweep(std::span<const SweepPoint> sweep_points,
                                       std::span<const Strategy> strategies,
                                       const SweepOptions& options, const std::stop_token& stop);

/// The points of one sweep point, in the order of the strategies.
[[nodiscard]] std::vector<Point> evaluate(const SweepPoint& sweep_point,
                                          std::span<const Strategy> strategies,
                                          const SweepOptions& options);

}  // namespace spillway
