#pragma once

#include <nlohmann/json.hpp>

#include "tools/gpu/move_timer.h"
#include "um/bytes.h"
#include "um/cuda/driver/api.h"
#include "um/cuda/managed/managed_allocation.h"
#include "um/memory.h"

namespace spillway::gpu {

/// What the driver is asked about, and with how much.
struct BehaviourOptions {
  um::Bytes size;  ///< of the block of unified memory; a multiple of 2 MiB
  int repeats = 5;
};

/// Free bytes of the GPU before and after a block of unified memory was allocated, brought near and
/// sent far, and after it was freed; and whether sending it far gave any back.
[[nodiscard]] nlohmann::json measure_free_memory(um::CudaApi& api, um::CudaManagedMemory& managed,
                                                 MoveTimer& timer, um::Bytes size);

/// What a discard saves: seconds to bring back a block that is far, with its content and without,
/// and to give room to one that was discarded. {"why_not"} where the driver has no discard.
[[nodiscard]] nlohmann::json measure_discard(um::CudaApi& api, um::CudaManagedMemory& managed,
                                             MoveTimer& timer, const BehaviourOptions& options);

/// What faults cost: seconds to read a block that is far with the GPU's copy engine, by faults and
/// after a prefetch; and to touch each page of a block that is near with the processor. How many
/// faults that were says count_faults().
[[nodiscard]] nlohmann::json measure_faults(um::CudaApi& api, um::CudaManagedMemory& managed,
                                            um::Memory& device, MoveTimer& timer,
                                            const BehaviourOptions& options);

}  // namespace spillway::gpu
