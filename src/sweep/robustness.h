#pragma once

#include "prefetch/plan.h"
#include "prefetch/profile.h"
#include "prefetch/task_graph.h"
#include "src/sweep/point.h"

namespace spillway {

/// Executes `plan` on the simulator `draws` times, each task's time multiplied by a number drawn
/// from [1 - noise, 1 + noise]; seeds are 1, 2, … Requires: a plan that verifies and does not page
/// on demand; at least one draw.
[[nodiscard]] Robustness measure_robustness(const prefetch::TaskGraph& graph,
                                            const prefetch::Plan& plan,
                                            const prefetch::Profile& profile, double noise,
                                            int draws);

}  // namespace spillway
