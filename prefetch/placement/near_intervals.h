#pragma once

#include <cstdint>
#include <vector>

#include "prefetch/plan.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// One stretch of a step in which a movable block, or a run's workspace, occupies near memory: from
/// the run that overwrites it, or its prefetch, until the run after which nobody needs it has
/// ended, or its offload. State that is near between steps: from its prefetch of one step until its
/// offload of the next, at one place since steps repeat; or always.
struct NearInterval {
  DataId data{};               ///< meaningless for a workspace
  bool is_workspace = false;   ///< of run `first`, which is `last` too
  um::Bytes size;              ///< in units of kSmallestPage
  bool is_prefetched = false;  ///< begins with prefetch `first` of the plan; else with run `first`
  bool is_offloaded = false;   ///< ends with offload `last` of the plan; else with run `last`
  /// Goes on from one step to the next. It is always near where no move begins it.
  bool spans_steps = false;
  std::uint32_t first = 0;
  std::uint32_t last = 0;
};

/// The near intervals of a step under `plan`, those that runs begin before those that prefetches
/// begin, each in order. Copies take no more than a block's bytes, so sizes are not rounded to the
/// plan's page.
///
/// Requires: `plan` verifies against `graph`, moves whole blocks and pages nothing on demand.
/// Complexity: O(accesses + moves).
[[nodiscard]] std::vector<NearInterval> find_near_intervals(const TaskGraph& graph,
                                                            const Plan& plan);

}  // namespace spillway::prefetch
