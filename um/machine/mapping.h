#pragma once

#include <cstddef>

#include "um/bytes.h"
#include "um/range.h"

namespace spillway::um {

/// Maps `size` bytes of fresh memory that reads as zeros, in huge pages where it can be, unknown to
/// child processes (a fork would make the kernel copy it page by page). Aligned to 2 MiB when it is
/// that large, else to a page; nothing is touched yet. A zero `size` gives an empty range.
/// Throws: OutOfMemory.
[[nodiscard]] Range map_memory(Bytes size);

/// Gives every page of `memory`, from map_memory(), its physical memory now, so that first use is
/// not slow. Throws: OutOfMemory.
void touch_memory(Range memory);

/// Gives back what map_memory() returned.
void unmap_memory(Range memory) noexcept;

}  // namespace spillway::um
