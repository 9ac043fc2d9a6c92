#pragma once

#include "um/bytes.h"

namespace spillway::gpu {

/// The most unified memory that measurements may have at any time while `free` bytes of the GPU are
/// free: a quarter of those, and at most 16 GiB. A driver that must evict has been seen to hang the
/// GPU for every program.
[[nodiscard]] um::Bytes managed_limit(um::Bytes free);

/// Throws um::Error, one sentence with what is free and what it takes, when `need` is more than
/// managed_limit(free).
void expect_within_limit(um::Bytes need, um::Bytes free);

}  // namespace spillway::gpu
