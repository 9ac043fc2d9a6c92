#pragma once

#include "prefetch/offload_plan.h"
#include "prefetch/planner.h"

namespace spillway::prefetch {

/// Drops and recomputes outputs of cheap tasks where that makes `best`, a plan without
/// recomputation, shorter: of the blocks in order of recompute time per byte, the best number of
/// leading ones on a grid of 32, then refined around it (facts on planning, section 3, PLAN step
/// 1), evaluated by simulation. About 45 evaluations.
[[nodiscard]] EvaluatedPlan drop_what_is_cheap(const Problem& problem, EvaluatedPlan best);

}  // namespace spillway::prefetch
