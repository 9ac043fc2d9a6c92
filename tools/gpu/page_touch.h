#pragma once

#include "um/range.h"

namespace spillway::gpu {

/// Reads one byte of each 4 KiB of `range` with the calling thread; how many seconds that took.
[[nodiscard]] double touch_pages(um::Range range);

}  // namespace spillway::gpu
