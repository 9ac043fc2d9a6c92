#pragma once

#include <optional>
#include <vector>

#include "prefetch/occupancy.h"
#include "prefetch/plan.h"
#include "prefetch/planner.h"
#include "um/bandwidth.h"

namespace spillway::prefetch {

/// A plan and the length that simulate() gives it.
struct EvaluatedPlan {
  Plan plan;
  um::Nanoseconds makespan{0};
};

/// Makes plans for one problem, which must outlive it, from sequences of runs.
/// Thread safety: plan() may be called by several threads at once.
class OffloadPlanner {
 public:
  explicit OffloadPlanner(const Problem& problem);

  /// The plan that executes `runs` within the problem's budget by offloading alone: cover(), then
  /// return_early(), add_moves() and simulate(). Nothing when some run does not fit. The `after` of
  /// `runs` is not looked at.
  [[nodiscard]] std::optional<EvaluatedPlan> plan(std::vector<TaskRun> runs) const;

 private:
  const Problem& problem_;
  Occupancy occupancy_;
};

/// A plan with `runs` and everything but moves, for `problem`: the frame that planners fill.
[[nodiscard]] Plan empty_plan(const Problem& problem, std::vector<TaskRun> runs);

}  // namespace spillway::prefetch
