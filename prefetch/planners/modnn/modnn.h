#pragma once

#include "prefetch/planner.h"

namespace spillway::prefetch {

/// moDNN (Chen et al., DATE 2018), Algorithm 1: executes the step in estimated time, task by task,
/// on a list of memory segments. A task's operands get room by the offloading scheme with the
/// lowest delay (Fig. 4) or by defragmentation. Each convolution takes the algorithm with the
/// largest gain (Eq. 5). Far blocks are prefetched for later tasks when waiting for another task
/// would delay their reader (Eq. 4).
///
/// The plan turns the execution's times into conditions: a prefetch that Algorithm 1 starts before
/// task t waits for the previous task and for the offloads that made its room. On unified memory
/// addresses are virtual; the virtual execution keeps them as the paper does, so fragmentation
/// costs moves here too.
///
/// The paper does not specify the following; here:
/// - ties between schemes: see find_scheme(). An offload starts after a block's last write (Fig.
///   3), or after its last use if the link cannot copy while tasks read;
/// - a scheme that makes room for a prefetch for task s keeps all operands of tasks up to s;
/// - EST(s) of Eq. 4 is the end of the current task plus the fastest algorithms that fit, in
///   sequence; the left side includes earlier work of Strm_D;
/// - whether a prefetch is predicted to be useful: VirtualMemory::can_be_allocated() for all tasks
///   up to s with the prefetched blocks near;
/// - T_pre of Eq. 5: Eq. 4's delay of s when some prefetches start only after task t: those that
///   fit in free room now, but not beside the workspace, and those of blocks that leave for it;
/// - an algorithm without a scheme for its workspace is taken only if it is the first.
///
/// Moves whole blocks, recomputes nothing. Deterministic. Complexity: O(runs * segments) if memory
/// suffices, otherwise times the number of look-ahead tasks.
[[nodiscard]] std::variant<Plan, Infeasible> plan_modnn(const Problem& problem);

}  // namespace spillway::prefetch
