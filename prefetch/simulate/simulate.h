#pragma once

#include "prefetch/plan.h"
#include "prefetch/profile.h"
#include "prefetch/simulate/run_times.h"
#include "prefetch/simulate/timeline.h"
#include "prefetch/task_graph.h"

namespace spillway::prefetch {

/// Executes `plan` on an idealised machine: one compute queue and one queue a link direction (one
/// for both where the link is not duplex; then, when the link becomes free, an offload that is
/// ready goes before a prefetch, and a clean one waits for it too), and one for updates on the far
/// side. Each entry starts when its queue is free and its condition holds. While moves are under
/// way a run advances at the profile's compute_speed_while_moving, once for each; beside a far
/// update likewise at compute_speed_while_updating. Exchanges between ranks are a queue more; those
/// that take some of the link and the moves beside them slow each other down (link_shares()).
///
/// Requires: the plan verifies, does not page on demand, and was made for the profile's graph.
/// Complexity: O(runs + moves).
[[nodiscard]] Timeline simulate(const Plan& plan, const Profile& profile,
                                const SimulateOptions& options = {});

/// The same for plans of either residency: one that pages on demand goes by page_on_demand(), with
/// which the function above, which knows no sizes, leaves faults out. Throws: as that.
[[nodiscard]] Timeline simulate(const TaskGraph& graph, const Plan& plan, const Profile& profile,
                                const SimulateOptions& options = {});

}  // namespace spillway::prefetch
