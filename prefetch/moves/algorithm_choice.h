#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/moves/offload_plan.h"
#include "prefetch/planner.h"

namespace spillway::prefetch {

/// Returns the fastest algorithm of `task` with a workspace of at most `room`; the first one, which
/// takes least, if no faster one fits.
[[nodiscard]] std::uint32_t fastest_within(const Problem& problem, const BlockSizes& block_sizes,
                                           TaskId task, um::Bytes room);

/// Returns every task once, each with its fastest algorithm, regardless of workspace.
[[nodiscard]] std::vector<TaskRun> fastest_runs(const TaskGraph& graph, const Profile& profile);

/// Returns every task once, in order, with the fastest algorithm that has room for its workspace
/// beside `near`; the first one if none fits. `near`: by run, the movable bytes near during it,
/// with the first algorithm's workspace.
[[nodiscard]] std::vector<TaskRun> fastest_beside(const Problem& problem,
                                                  const BlockSizes& block_sizes,
                                                  std::span<const um::Bytes> near);

/// Returns every task once, each with its fastest algorithm for which operands and workspace fit in
/// near memory when everything else is far.
[[nodiscard]] std::vector<TaskRun> fastest_that_fit(const Problem& problem);

/// Returns the best plan for a sequence of runs; nullopt when there is none.
using Evaluate = std::function<std::optional<EvaluatedPlan>(std::vector<TaskRun>)>;

/// Starts from fastest_that_fit() and reverts fast algorithms where their workspace costs more in
/// moves than it saves. First tries to revert all, then one by one, keeping what `evaluate` finds
/// shorter. Calls it at most `evaluations` times, which is at least one. Returns nullopt when even
/// the first algorithms do not fit.
[[nodiscard]] std::optional<EvaluatedPlan> choose_algorithms(const Problem& problem,
                                                             const Evaluate& evaluate,
                                                             int evaluations);

}  // namespace spillway::prefetch
