#pragma once

#include "src/plan/plans.h"
#include "src/plan/workload.h"
#include "um/bytes.h"

namespace spillway {

/// What a run of `plans` needs in which nothing ever moves: its state, small tensors, and the slab.
[[nodiscard]] um::Bytes resident_need(const Workload& workload, const Plans& plans);

}  // namespace spillway
