#pragma once

#include <cuda_runtime_api.h>

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

}  // namespace spillway::um
