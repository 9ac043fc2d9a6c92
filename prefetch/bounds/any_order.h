#pragma once

#include "prefetch/planner.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// Returns a lower bound of the makespan of every plan for `problem`, whatever the order of its
/// tasks and however often they are recomputed: Bounds::any_order.
///
/// In each order the first run of a task t follows the tasks that made its inputs, directly or
/// through others, and precedes those that need its results. Content that a task before t made and
/// a task after t reads is live during the first run of t. If all that, with the operands and least
/// workspace of t, is more than fits, then the missing bytes have left before, or are recomputed
/// afterwards: the cheapest division counts, as in Bounds::mixed. Tasks neither before nor after t
/// may fill the waits, and count only in the sum of all tasks. Exchanges and far updates count
/// nothing.
///
/// Requires: the budget is at least near_need().smallest.
/// Complexity: O(tasks * accesses) up to 2000 tasks; above that some tasks are sampled.
[[nodiscard]] um::Nanoseconds any_order_bound(const Problem& problem);

}  // namespace spillway::prefetch
