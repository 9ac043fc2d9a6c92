#pragma once

#include <span>

#include "prefetch/profile.h"
#include "src/plan/memory_mode.h"
#include "src/plan/plans.h"
#include "src/plan/workload.h"
#include "um/bytes.h"

namespace spillway {

/// How long a batch should take by its plans: what the simulator says, or in resident mode, where
/// nothing moves, the sum of the tasks' times. `profiles` are those of the training steps.
[[nodiscard]] um::Nanoseconds predicted_step(const Workload& workload,
                                             std::span<const prefetch::Profile> profiles,
                                             const Plans& plans, MemoryMode memory);

}  // namespace spillway
