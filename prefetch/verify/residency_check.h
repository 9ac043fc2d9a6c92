#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "prefetch/block_sizes.h"
#include "prefetch/liveness.h"
#include "prefetch/plan.h"
#include "prefetch/task_graph.h"
#include "prefetch/verify/verify.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// Checks, page by page, that the reads and updates of a run are near when it starts. Each offload
/// lies between two uses of its block. Each page that left returns before the next use, after its
/// own offload, and the run waits for it. A clean offload has a valid far copy. No move is
/// unnecessary. Each page of offloadable state ends the step where it began, and with a valid far
/// copy if it began with one.
[[nodiscard]] std::optional<Violation> check_residency(const TaskGraph& graph,
                                                       const BlockSizes& block_sizes,
                                                       const Plan& plan,
                                                       std::span<const Life> lives);

/// The most near memory in a step, and when.
struct NearPeak {
  um::Bytes bytes;
  std::uint32_t at = 0;  ///< runs that have ended when so much is near
};

/// Returns the most near memory that `plan` can use under any timing: at and between runs, for
/// every possible number of started prefetches, counting as away only offloads that must have
/// ended.
///
/// Requires: the plan passed check_dataflow() and check_residency().
[[nodiscard]] NearPeak worst_case_peak(const TaskGraph& graph, const BlockSizes& block_sizes,
                                       const Plan& plan, std::span<const Life> lives);

}  // namespace spillway::prefetch
