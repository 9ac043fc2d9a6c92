#pragma once

#include <optional>
#include <vector>

#include "prefetch/plan.h"
#include "prefetch/planner.h"
#include "um/bandwidth.h"

namespace spillway::prefetch {

/// A plan and the length that simulate() gives it.
struct EvaluatedPlan {
  Plan plan;
  um::Nanoseconds makespan{0};
};

/// The plan that executes `runs` within the problem's budget by offloading alone: cover(), then
/// schedule_moves(), then simulate(). Nothing when some run does not fit. The `after` of `runs` is
/// not looked at.
[[nodiscard]] std::optional<EvaluatedPlan> plan_offloads(const Problem& problem,
                                                         std::vector<TaskRun> runs);

}  // namespace spillway::prefetch
