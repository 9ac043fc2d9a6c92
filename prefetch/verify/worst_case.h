#pragma once

#include <span>

#include "prefetch/block_sizes.h"
#include "prefetch/liveness.h"
#include "prefetch/plan.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// The most near memory that `plan` can ever use, whatever the timing: at every run, and between
/// runs, for every number of prefetches that may have started by then, counting as away only those
/// offloads that must have ended.
///
/// Requires: the plan passed check_dataflow() and check_residency().
[[nodiscard]] um::Bytes worst_case_peak(const TaskGraph& graph, const BlockSizes& block_sizes,
                                        const Plan& plan, std::span<const Life> lives);

}  // namespace spillway::prefetch
