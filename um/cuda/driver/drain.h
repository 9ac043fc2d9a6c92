#pragma once

#include <cuda_runtime_api.h>

#include "um/cuda/driver/api.h"

namespace spillway::um {

/// Waits for all work of `stream`, for who is about to give up what it uses and cannot throw.
inline void drain(CudaApi& api, cudaStream_t stream) noexcept {
  try {
    api.synchronize(stream);
  } catch (...) {  // the driver has failed: nothing is under way
  }
}

}  // namespace spillway::um
