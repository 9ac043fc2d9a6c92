#pragma once

#include <optional>
#include <span>

#include "prefetch/block_sizes.h"
#include "prefetch/liveness.h"
#include "prefetch/plan.h"
#include "prefetch/task_graph.h"
#include "prefetch/verify/verify.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// Checks, page by page, that what a run reads or updates is near when it starts: each offload lies
/// between two uses of its block, each byte that left comes back before the next use, waits for its
/// own offload, and is waited for; a clean offload has a valid far copy; nothing moves that nobody
/// needs; each page of offloadable state ends the step where it began, and with a valid far copy
/// where it began with one.
[[nodiscard]] std::optional<Violation> check_residency(const TaskGraph& graph,
                                                       const BlockSizes& block_sizes,
                                                       const Plan& plan,
                                                       std::span<const Life> lives);

/// The most near memory that `plan` can ever use, whatever the timing: at every run, and between
/// runs, for every number of prefetches that may have started by then, counting as away only those
/// offloads that must have ended.
///
/// Requires: the plan passed check_dataflow() and check_residency().
[[nodiscard]] um::Bytes worst_case_peak(const TaskGraph& graph, const BlockSizes& block_sizes,
                                        const Plan& plan, std::span<const Life> lives);

}  // namespace spillway::prefetch
