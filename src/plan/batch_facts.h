#pragma once

#include "prefetch/planner.h"
#include "src/plan/plans.h"
#include "src/plan/workload.h"

namespace spillway {

/// Of the plans of a whole batch: sums over its sub-steps.
[[nodiscard]] prefetch::PlanFacts facts_of(const Plans& plans, const Workload& workload);

}  // namespace spillway
