#pragma once

#include <vector>

#include "prefetch/plan.h"
#include "prefetch/simulate/timeline.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway {

/// The most near memory in use while each run of `plan` is under way, as `timeline` says; for a run
/// that takes no time, at its moment. Requires: as prefetch::memory_curve.
[[nodiscard]] std::vector<um::Bytes> memory_by_run(const prefetch::TaskGraph& graph,
                                                   const prefetch::Plan& plan,
                                                   const prefetch::Timeline& timeline);

}  // namespace spillway
