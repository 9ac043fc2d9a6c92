#pragma once

#include <cstddef>

#include "prefetch/plan.h"
#include "prefetch/profile.h"
#include "prefetch/simulate/timeline.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// The page faults of one step.
struct PagedStep {
  Timeline timeline;  ///< a run begins when its faults are served: the gap before it is the stall
  std::size_t faults = 0;
  um::Bytes fetched;       ///< over the link, far to near
  um::Bytes written_back;  ///< over the link, near to far
};

/// Predicts unified memory without hints: the steady state of consecutive steps.
///
/// Blocks and workspaces lie at the addresses of place(), and near memory has `plan.budget`,
/// including everything that is always near. A run touches the pages of its operands and its
/// workspace in order. A far page costs the time of the link's `faults` and its transfer, even if
/// it is write-only or dead, which a driver does not know; with `spare_overwritten` completely
/// overwritten pages are not transferred. If room is short, the page that became near first is
/// evicted; with `evict_by_use`, the least recently used page that no running task uses. A page
/// that was written since it came is written back. Faults overlap neither with computing nor with
/// each other.
///
/// The time of a GPU's group of faults is not published; here each page of the plan, at most 2 MiB,
/// is one group. Without `evict_by_use` a page may leave while its run still computes; it does not
/// return for that run.
///
/// Requires: `plan` is of Residency::kOnDemand and verifies.
/// Throws: um::Error for a step of more than 2^25 pages.
/// Complexity: O(pages touched) and that of place().
[[nodiscard]] PagedStep page_on_demand(const TaskGraph& graph, const Plan& plan,
                                       const Profile& profile, const SimulateOptions& options = {});

}  // namespace spillway::prefetch
