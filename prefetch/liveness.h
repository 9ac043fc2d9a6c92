#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "prefetch/occupancy.h"
#include "prefetch/plan.h"
#include "prefetch/task_graph.h"

namespace spillway::prefetch {

/// A place in the sequence of runs.
using Position = std::uint32_t;

/// One run's use of a block.
struct BlockAccess {
  Position position;
  bool reads;
  bool writes;
};

/// A stretch of the step during which a tensor holds content that is still needed: from the run
/// that overwrites it to the last run that reads it. A recomputed block has two lives.
struct Life {
  DataId data;
  std::vector<BlockAccess> accesses;  ///< in ascending position, at least one

  [[nodiscard]] Position begin() const { return accesses.front().position; }
  [[nodiscard]] Position last() const { return accesses.back().position; }
};

/// The lives of all tensors of `graph` under the sequence `runs`, in order of their beginning.
/// Complexity: O(accesses).
[[nodiscard]] std::vector<Life> find_lives(const TaskGraph& graph, std::span<const TaskRun> runs);

/// Movable bytes near during each run when nothing is offloaded: live blocks and the run's
/// workspace, in whole pages.
[[nodiscard]] std::vector<um::Bytes> demand(const TaskGraph& graph, const Occupancy& occupancy,
                                            std::span<const TaskRun> runs,
                                            std::span<const Life> lives);

/// Movable bytes that the run at each position cannot do without: its own operands and workspace
/// (moDNN Eq. 1).
[[nodiscard]] std::vector<um::Bytes> working_sets(const TaskGraph& graph,
                                                  const Occupancy& occupancy,
                                                  std::span<const TaskRun> runs);

/// The blocks that `task` reads or writes, each once.
[[nodiscard]] std::vector<DataId> operands(const Task& task);

}  // namespace spillway::prefetch
