#pragma once

#include "um/bytes.h"

namespace spillway::gpu {

/// Throws um::Error, one sentence with what is free and what it takes, when `need` is more unified
/// memory than um::shared_gpu_limit(free).
void expect_within_limit(um::Bytes need, um::Bytes free);

}  // namespace spillway::gpu
