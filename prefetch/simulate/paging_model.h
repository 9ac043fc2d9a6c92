#pragma once

#include "prefetch/plan.h"
#include "prefetch/profile.h"
#include "prefetch/simulate/run_times.h"
#include "prefetch/simulate/timeline.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// What page faults did in one step.
struct PagedStep {
  Timeline timeline;  ///< a run begins when its faults are served: the gap before it is the stall
  std::size_t faults = 0;
  um::Bytes fetched;       ///< over the link, far to near
  um::Bytes written_back;  ///< over the link, near to far
};

/// Predicts unified memory that nobody hints to: the steady state, one step after another.
///
/// Blocks and workspaces lie at the addresses that place() gives them, and near memory has
/// `plan.budget`, what is always near included. A run touches the pages of its operands and its
/// workspace in order. A page that is far faults: the time of the link's `faults`, and its
/// transfer, since a driver does not know that a write-only or dead page need not come; where the
/// device knows the former (`spare_overwritten`), those that are not overwritten whole. Where there
/// is no room the page that came near longest ago leaves, whatever its use, or the one that no
/// running task uses and that was used longest ago (`evict_by_use`); it is written back when it was
/// written since it came. Nothing overlaps with computing or with another fault.
///
/// No published time is known for a group of faults of a GPU; here each page of the plan, at most 2
/// MiB, is one group. Without `evict_by_use` a page may leave while its run still computes; it does
/// not come back for it.
///
/// Requires: `plan` is of Residency::kOnDemand and verifies.
/// Throws: um::Error for a step of more than 2^25 pages.
/// Complexity: O(pages touched) and that of place().
[[nodiscard]] PagedStep page_on_demand(const TaskGraph& graph, const Plan& plan,
                                       const Profile& profile, const SimulateOptions& options = {});

}  // namespace spillway::prefetch
