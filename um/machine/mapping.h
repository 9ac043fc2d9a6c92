#pragma once

#include <cstddef>

#include "um/bytes.h"

namespace spillway::um {

/// Maps `size` bytes of fresh zeros, in huge pages if possible, without touching them. Child
/// processes do not inherit the memory, since a fork would copy it page by page. It is aligned to 2
/// MiB when it is that large, otherwise to a page. A zero `size` gives an empty range. Throws:
/// OutOfMemory.
[[nodiscard]] Range map_memory(Bytes size);

/// Gives every page of `memory`, from map_memory(), its physical memory now, so that the first use
/// is not slow. Throws: OutOfMemory.
void touch_memory(Range memory);

/// Unmaps the result of map_memory().
void unmap_memory(Range memory) noexcept;

}  // namespace spillway::um
