#pragma once

#include <cuda_runtime_api.h>

#include "um/cuda/driver/api.h"
#include "um/error.h"

namespace spillway::um {

/// A failed call of the CUDA runtime. `what()` has CUDA's text and name of the error, and the
/// source line.
class CudaError : public Error {
 public:
  CudaError(cudaError_t code, Caller where);
  /// Returns the status of the failed call.
  [[nodiscard]] cudaError_t code() const noexcept { return code_; }

 private:
  cudaError_t code_;
};

/// Throws CudaError with the caller's file and line unless `status` is success.
void check(cudaError_t status, Caller where = Caller::here());

/// Waits for all work of `stream`. For callers that must not throw and are about to release what
/// the work uses.
inline void drain(CudaApi& api, cudaStream_t stream) noexcept {
  try {
    api.synchronize(stream);
  } catch (...) {  // the driver has failed: no work is in flight
  }
}

}  // namespace spillway::um
