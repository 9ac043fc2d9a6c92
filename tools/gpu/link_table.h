#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "tools/gpu/move_timer.h"
#include "um/bytes.h"
#include "um/cuda/driver/api.h"
#include "um/cuda/managed/managed_allocation.h"
#include "um/memory.h"

namespace spillway::gpu {

/// What a link table is measured with.
struct LinkTableOptions {
  std::vector<um::Bytes> sizes;  ///< multiples of 2 MiB, the largest last
  int repeats = 7;               ///< of each line
};

/// Where a link table takes memory from.
struct LinkMemory {
  um::Memory& device;
  um::Memory& pinned;
  um::CudaManagedMemory* managed;  ///< null: without the lines of unified memory
};

/// The link, call by call: copies of pinned and pageable RAM and prefetches of unified memory, in
/// and out, of each size, on an idle stream and behind queued work. Lines {"memory", "way",
/// "size_bytes", "stream", "bytes_per_second", "host_seconds"}. Takes the largest size of each kind
/// of memory. Throws: um::Error; CudaError.
[[nodiscard]] nlohmann::json measure_links(um::CudaApi& api, const LinkMemory& memory,
                                           MoveTimer& timer, const LinkTableOptions& options);

}  // namespace spillway::gpu
