#pragma once

#include "src/ops/backend.h"
#include "src/ops/cuda_plugin.h"

namespace spillway::cuda {

/// Opens a GPU with its kernels and stream; the calling thread uses it from then on. Throws:
/// um::Error if the GPU does not exist, or if it or a library cannot be used.
[[nodiscard]] ExecutionContext open_context(const CudaRequest& request);

}  // namespace spillway::cuda
