#pragma once

#include <cstddef>

#include "um/cuda/driver/cuda_facts.h"

namespace spillway::cuda {

/// Throws: um::Error, one sentence that says what to do, unless our kernels were compiled for the
/// current device. `facts` describe that device.
void expect_kernels_for_this_gpu(const um::CudaFacts& facts);

/// Bytes of shared memory that a block may use on every device without an explicit request.
inline constexpr std::size_t kSharedBytes = 48U << 10U;

}  // namespace spillway::cuda
