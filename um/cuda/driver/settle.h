#pragma once

#include "um/cuda/driver/api.h"

namespace spillway::um {

/// Waits for all that `stream` was given, after a call that failed: what comes before that call may
/// still use memory that its caller is about to give back. A second failure is dropped.
inline void settle(CudaApi& api, cudaStream_t stream) noexcept {
  try {
    api.synchronize(stream);
  } catch (...) {  // the first failure is told
  }
}

}  // namespace spillway::um
