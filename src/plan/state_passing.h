#pragma once

#include <span>

#include "prefetch/profile.h"
#include "src/plan/memory_mode.h"
#include "src/plan/plans.h"
#include "src/plan/workload.h"
#include "um/bytes.h"

namespace spillway {

/// How long a batch waits, by its profiles' link, while the sub-steps of its shards pass on state
/// whose pages one plan has near between steps and the next one far. Unified memory moves the pages
/// that differ. With explicit copies all that is near is sent far, where it was written, and
/// brought again. Zero where a batch runs one kind of step, or state is always near.
[[nodiscard]] um::Nanoseconds state_passing_time(const Workload& workload,
                                                 std::span<const prefetch::Profile> profiles,
                                                 const Plans& plans, MemoryMode memory);

}  // namespace spillway
