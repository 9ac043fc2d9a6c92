#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/moves/offload_plan.h"
#include "prefetch/planner.h"

namespace spillway::prefetch {

/// The fastest algorithm of `task` among those whose workspace takes at most `room`; the first one,
/// which takes least, where no faster one fits.
[[nodiscard]] std::uint32_t fastest_within(const Problem& problem, const BlockSizes& block_sizes,
                                           TaskId task, um::Bytes room);

/// Every task once, each with its fastest algorithm, whatever its workspace.
[[nodiscard]] std::vector<TaskRun> fastest_runs(const TaskGraph& graph, const Profile& profile);

/// Every task once, each with its fastest algorithm among those whose operands and workspace fit in
/// near memory when everything else is far.
[[nodiscard]] std::vector<TaskRun> fastest_that_fit(const Problem& problem);

/// The best plan for a sequence of runs; nothing when there is none.
using Evaluate = std::function<std::optional<EvaluatedPlan>(std::vector<TaskRun>)>;

/// Starts from fastest_that_fit() and takes fast algorithms back where their workspace costs more
/// in moves than it saves: first all of them, then one by one, keeping what `evaluate` finds
/// shorter. At most `evaluations` calls, which is at least one. Nothing when even the first
/// algorithms do not fit.
[[nodiscard]] std::optional<EvaluatedPlan> choose_algorithms(const Problem& problem,
                                                             const Evaluate& evaluate,
                                                             int evaluations);

}  // namespace spillway::prefetch
