#pragma once

#include "um/bytes.h"

namespace spillway::host {

/// Zeroes `block` and leaves none of it in the processor's caches, where that is possible.
/// Requires: whole 64 bytes, aligned to that.
void clear_memory(um::Range block);

}  // namespace spillway::host
