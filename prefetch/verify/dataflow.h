#pragma once

#include <optional>
#include <span>

#include "prefetch/block_sizes.h"
#include "prefetch/plan.h"
#include "prefetch/task_graph.h"
#include "prefetch/verify/verify.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// Checks that the sequence `runs` computes the same as every task once, in the graph's order. Each
/// task has one first run, and recomputations after it, in any order; tasks that load the batch
/// come first (count_loads()). Every run, also a recomputation, reads the values that its task
/// reads in the graph's order. All state ends the step with the same values.
///
/// Works by value numbering: in the graph's order every write gives its block a unique number. A
/// run that reads the right numbers writes its task's numbers again. A recomputation that restores
/// an outdated value is thus detected at the block's next read. A write also invalidates blocks in
/// the same memory (BlockSizes::host_of(), with pages of `page`). Arithmetic is not examined.
[[nodiscard]] std::optional<Violation> check_dataflow(const TaskGraph& graph,
                                                      std::span<const TaskRun> runs,
                                                      um::Bytes page = kLargestPage);

}  // namespace spillway::prefetch
