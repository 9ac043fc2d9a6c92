#pragma once

#include <cstdint>
#include <vector>

#include "prefetch/plan.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// A stretch of a step in which a movable block, or a run's workspace, occupies near memory. It
/// begins with the run that overwrites the block, or with a prefetch. It ends with the last run
/// that needs it, or with an offload. State that is near between steps: from its prefetch in one
/// step to its offload in the next, at the same place in each step; or always.
struct NearInterval {
  DataId data{};               ///< undefined for a workspace
  bool is_workspace = false;   ///< of run `first`, which is also `last`
  um::Bytes size;              ///< in units of kSmallestPage
  bool is_prefetched = false;  ///< begins with prefetch `first` of the plan; else with run `first`
  bool is_offloaded = false;   ///< ends with offload `last` of the plan; else with run `last`
  /// True if it continues into the next step. It is always near unless a move begins it.
  bool spans_steps = false;
  std::uint32_t first = 0;
  std::uint32_t last = 0;
};

/// Returns the near intervals of a step under `plan`: those begun by runs, then those begun by
/// prefetches, each in order. Copies take only a block's bytes, so sizes are not rounded to the
/// plan's page.
///
/// Requires: `plan` verifies against `graph`, moves whole blocks and does not page on demand.
/// Complexity: O(accesses + moves).
[[nodiscard]] std::vector<NearInterval> find_near_intervals(const TaskGraph& graph,
                                                            const Plan& plan);

}  // namespace spillway::prefetch
