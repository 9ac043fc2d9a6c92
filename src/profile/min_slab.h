#pragma once

#include "src/plan/workload.h"
#include "um/bytes.h"

namespace spillway {

/// Bytes of unified memory, whole pages, that the steps of `workload` take at least, whatever plan
/// they run under: what a task needs at the same time. Plans that drop little take more, since a
/// block keeps its addresses while its content is far (prefetch/slab_placement.h).
[[nodiscard]] um::Bytes min_slab(const Workload& workload);

}  // namespace spillway
