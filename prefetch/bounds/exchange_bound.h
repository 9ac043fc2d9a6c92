#pragma once

#include "prefetch/profile.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// A minimum of the makespan of a step with exchanges between ranks, whatever moves: the last
/// exchanges, any number of them, begin when the first of these is ready, take place one after the
/// other as fast as alone, and what needs the gradients of the last one to end follows. 0 without
/// exchanges. Requires: exchanges are in the order in which they are ready.
/// Complexity: O(tasks with their operands).
[[nodiscard]] um::Nanoseconds exchange_bound(const TaskGraph& graph, const Profile& profile);

}  // namespace spillway::prefetch
