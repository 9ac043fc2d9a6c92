#pragma once

#include "prefetch/plan.h"
#include "prefetch/profile.h"
#include "prefetch/simulate/timeline.h"
#include "prefetch/task_graph.h"

namespace spillway::prefetch {

/// Executes `plan` on an idealised machine with one compute queue, one queue per link direction,
/// one for far updates and one for rank exchanges. Each entry starts when its queue is free and its
/// condition holds. A link that is not duplex has one queue: when it becomes free, a ready offload
/// goes before a prefetch; a clean one waits for the link, too. A run advances at the profile's
/// compute_speed_while_moving during a move (squared during two), times
/// compute_speed_while_updating during a far update. Exchanges on the link and moves slow each
/// other down (link_shares()).
///
/// Requires: the plan verifies, does not page on demand, and was made for the profile's graph.
/// Complexity: O(runs + moves).
[[nodiscard]] Timeline simulate(const Plan& plan, const Profile& profile,
                                const SimulateOptions& options = {});

/// Executes a plan of either residency: a plan that pages on demand by page_on_demand(), since the
/// function above does not know sizes and ignores faults. Throws: as page_on_demand().
[[nodiscard]] Timeline simulate(const TaskGraph& graph, const Plan& plan, const Profile& profile,
                                const SimulateOptions& options = {});

}  // namespace spillway::prefetch
