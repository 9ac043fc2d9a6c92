#pragma once

#include "src/cuda_plugin.h"
#include "src/processor.h"

namespace spillway::cuda {

/// A GPU with its kernels and stream. Throws: um::Error when there is no such GPU, or it or a
/// library cannot be used.
[[nodiscard]] Processor open_processor(const CudaRequest& request);

}  // namespace spillway::cuda
