#pragma once

#include "prefetch/plan.h"
#include "prefetch/planner.h"

namespace spillway {

/// `plan`, or one in its place whose blocks have fixed places in the copy mode's arena: an arena
/// that is compacted holds up the step while it copies (GoogLeNet at batch 32 under half of its
/// need: 0.17 s of 1.34, and 0.37 s of 1.65 by `capacity`). The planner is asked again for what a
/// little less near memory would take, until the places fit into all of it. `plan` is kept where
/// that makes the predicted step slower by more than an eighth, or where several times do not help.
/// Requires: `plan` is the planner's for `problem`, and verifies. The result verifies.
/// Complexity: at most five times planning and prefetch::place_step().
[[nodiscard]] prefetch::Plan with_fixed_places(const prefetch::Planner& planner,
                                               const prefetch::Problem& problem,
                                               prefetch::Plan plan);

}  // namespace spillway
