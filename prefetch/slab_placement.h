#pragma once

#include <span>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/liveness.h"
#include "prefetch/plan.h"
#include "prefetch/state_home.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// The place of each movable block and each run's workspace in one slab of addresses. Blocks with
/// disjoint lives may share addresses, also while a discarded block waits for its recomputation. A
/// block has the same place in all its lives, and state keeps its place for ever.
struct Placement {
  std::vector<um::Bytes> blocks;      ///< by DataId; undefined for blocks that are not movable
  std::vector<um::Bytes> workspaces;  ///< by position; undefined if there is none
  um::Bytes extent;                   ///< bytes of the slab
};

/// Places state at `state`, and everything else above its extent, greedily by size: the largest
/// first, each in the lowest gap that is free throughout its time. All offsets are multiples of the
/// page. Complexity: O(n^2), n lives and workspaces.
[[nodiscard]] Placement place(const TaskGraph& graph, const BlockSizes& block_sizes,
                              std::span<const TaskRun> runs, std::span<const Life> lives,
                              const StatePlaces& state);

}  // namespace spillway::prefetch
