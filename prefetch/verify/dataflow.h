#pragma once

#include <optional>
#include <span>

#include "prefetch/plan.h"
#include "prefetch/task_graph.h"
#include "prefetch/verify/verify.h"

namespace spillway::prefetch {

/// Checks that the sequence `runs` computes what running every task once, in order, computes: each
/// task runs exactly once in its place, every run, first or repeated, reads the values that its
/// task reads in that order, and all state ends the step with the same values.
///
/// Works by numbering values: in the order of the tasks every write gives its block a number of its
/// own. A run that reads the right numbers writes its task's numbers again, so a recomputation that
/// brings back an older value of a block is seen where that block is read next. A write also ends
/// what the blocks in the same memory (DataBlock::lies_in) hold. No arithmetic is looked at.
[[nodiscard]] std::optional<Violation> check_dataflow(const TaskGraph& graph,
                                                      std::span<const TaskRun> runs);

}  // namespace spillway::prefetch
