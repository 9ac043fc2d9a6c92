#pragma once

#include <vector>

#include "prefetch/plan.h"
#include "prefetch/profile.h"
#include "prefetch/task_graph.h"
#include "um/bandwidth.h"

namespace spillway::prefetch {

/// A block that can be dropped after its last use in the forward pass and made again just before
/// its first use in the backward pass, because every task that writes it is recomputable and would
/// read the same values again.
struct Recomputable {
  DataId data{};
  um::Nanoseconds cost{0};  ///< of its tasks, their inputs present
  um::Bytes size;           ///< in whole pages
};

/// The droppable blocks of `graph`, cheapest per byte first; any number of leading ones can be
/// dropped together. `runs` gives the algorithms.
[[nodiscard]] std::vector<Recomputable> find_recomputable(const TaskGraph& graph,
                                                          const Profile& profile, um::Bytes page,
                                                          const std::vector<TaskRun>& runs);

/// The sequence `runs` (every task once) with the recomputations inserted that make the blocks in
/// `dropped` again. What a recomputation reads and was dropped itself is recomputed first; each
/// block is recomputed once and kept until its last use.
[[nodiscard]] std::vector<TaskRun> with_recomputation(const TaskGraph& graph,
                                                      const std::vector<TaskRun>& runs,
                                                      const std::vector<DataId>& dropped);

}  // namespace spillway::prefetch
