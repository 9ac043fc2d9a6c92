#pragma once

#include "prefetch/planner.h"

namespace spillway::prefetch {

/// moDNN (Chen et al., DATE 2018), Algorithm 1: the step is executed in estimated time, task by
/// task, on a list of memory segments. A task's operands get room, by the offloading scheme with
/// the lowest delay (Fig. 4) or by defragmentation; each convolution takes the algorithm with the
/// largest gain (Eq. 5); and blocks that are far are fetched for later tasks when waiting one task
/// longer would delay their reader (Eq. 4).
///
/// What the execution decides in time, the plan keeps as conditions: a prefetch that Algorithm 1
/// starts before task t waits for the task before t and for the offloads that made its room. On
/// unified memory addresses are virtual; the virtual execution keeps them as the paper does, so
/// fragmentation costs moves here too.
///
/// The paper is silent on the following; here:
/// - ties between schemes: see find_scheme(). An offload starts after a block's last write
///   (Fig. 3), or where the link cannot copy while tasks read, after its last use;
/// - a scheme that makes room for a prefetch for task s leaves alone what tasks up to s use;
/// - EST(s) of Eq. 4 is the end of the current task and then the fastest algorithms that fit, one
///   after the other; the left side waits for what Strm_D has to do before, too;
/// - the prediction whether a prefetch is useful: VirtualMemory::can_be_allocated(), for all tasks
///   up to s with the prefetched blocks near;
/// - T_pre of Eq. 5: Eq. 4's delay of s when the fetches that find free room now, but not beside
///   the workspace, start after task t; and so do those of what leaves for the workspace;
/// - an algorithm for whose workspace there is no scheme is taken only where it is the first.
///
/// Moves whole blocks, recomputes nothing. Deterministic. Complexity: O(runs * segments) where
/// memory suffices, times the tasks that are looked ahead where it does not.
[[nodiscard]] std::variant<Plan, Infeasible> plan_modnn(const Problem& problem);

}  // namespace spillway::prefetch
