#pragma once

#include "src/ops/backend.h"
#include "src/ops/cuda_plugin.h"

namespace spillway::cuda {

/// A GPU with its kernels and stream; the calling thread uses it from then on. Throws: um::Error
/// when there is no such GPU, or it or a library cannot be used.
[[nodiscard]] ExecutionContext open_context(const CudaRequest& request);

}  // namespace spillway::cuda
