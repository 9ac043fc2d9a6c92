#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "prefetch/bounds/bounds.h"
#include "prefetch/planner.h"
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
  /// Simulated; not there for a plan that does not verify.
  std::optional<um::Nanoseconds> makespan;
  um::Bytes peak;  ///< proved, under any timing
  um::Bytes offloaded;
  um::Bytes prefetched;
  std::size_t recomputed_tasks = 0;
  /// By OOC-Paleo's analytic model, of the strategy closest to the planner's; not there for plans
  /// that page on demand.
  std::optional<um::Nanoseconds> paleo;
  um::Nanoseconds planning{0};
  std::string violation;  ///< why the plan must not run; empty: it is verified
  std::optional<Robustness> robustness;
  std::vector<um::Bytes> memory;  ///< by run, where it was asked for
};

struct Point {
  PointKey key;
  PointFacts facts;
  std::optional<PlanOutcome> outcome;  ///< not there: the strategy has no plan for this budget
  /// Where there is no outcome: the smallest budget that works for this strategy.
  um::Bytes smallest_budget;
  std::string refusal;  ///< why it has none whatever the budget; empty: a larger budget works
};

/// Makespan over the time of a step with room for everything; nothing where there is no makespan.
[[nodiscard]] std::optional<double> slowdown(const Point& point);

}  // namespace spillway
