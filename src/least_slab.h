#pragma once

#include "src/workload.h"
#include "um/bytes.h"

namespace spillway {

/// Bytes of unified memory, whole pages, that the steps of `workload` take at least, whatever plan
/// they run under: a block keeps its addresses from its first write to its last read
/// (prefetch/placement.h), wherever its content is meanwhile and however often it is made again.
[[nodiscard]] um::Bytes least_slab(const Workload& workload);

}  // namespace spillway
