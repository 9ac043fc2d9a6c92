#pragma once

#include "um/cuda/driver/api.h"

namespace spillway::cuda {

/// Throws: um::Error, one sentence that says what to do, unless our kernels were compiled for the
/// current device, which says `facts` of itself.
void expect_kernels_for_this_gpu(const um::CudaFacts& facts);

}  // namespace spillway::cuda
