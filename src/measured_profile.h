#pragma once

#include <atomic>

#include "prefetch/profile.h"
#include "src/memory_mode.h"
#include "src/processor.h"
#include "src/profiler.h"
#include "src/workload.h"
#include "um/bytes.h"
#include "um/managed_space.h"

namespace spillway {

/// Measures the training step of `workload` and the link on `processor`, in at most `limit` bytes
/// of near memory that are given back. `mode` and `space` say what far memory, link and paging will
/// be.
/// Throws: um::OutOfMemory; Interrupted when `stop` becomes true.
[[nodiscard]] prefetch::Profile measure_profile(Processor& processor, const Workload& workload,
                                                um::Bytes limit, MemoryMode mode,
                                                const um::ManagedOptions& space,
                                                const std::atomic<bool>& stop,
                                                const OnProgress& on_progress);

}  // namespace spillway
