#pragma once

#include <cstddef>

#include "um/cuda/driver/cuda_facts.h"

namespace spillway::cuda {

/// Throws: um::Error, one sentence that says what to do, unless our kernels were compiled for the
/// current device, which says `facts` of itself.
void expect_kernels_for_this_gpu(const um::CudaFacts& facts);

/// Bytes of shared memory that a block of threads may have on every device; more has to be asked
/// for.
inline constexpr std::size_t kSharedBytes = 48U << 10U;

}  // namespace spillway::cuda
