#pragma once

#include <optional>
#include <span>

#include "prefetch/plan.h"
#include "prefetch/task_graph.h"
#include "prefetch/verify/verify.h"

namespace spillway::prefetch {

/// Checks that the sequence `runs` computes the same as every task once, in order. Each task runs
/// first exactly once, in order. Every run, also a recomputation, reads the values that its task
/// reads in that order. All state ends the step with the same values.
///
/// Works by value numbering: in task order every write gives its block a unique number. A run that
/// reads the right numbers writes its task's numbers again. A recomputation that restores an
/// outdated value is thus detected at the block's next read. A write also invalidates blocks in the
/// same memory (DataBlock::lies_in). Arithmetic is not examined.
[[nodiscard]] std::optional<Violation> check_dataflow(const TaskGraph& graph,
                                                      std::span<const TaskRun> runs);

}  // namespace spillway::prefetch
