#pragma once

#include <cuda_runtime_api.h>

#include "um/error.h"

namespace spillway::um {

/// A call of the CUDA runtime failed. `what()` has CUDA's text, its name for it, and the source
/// line.
class CudaError : public Error {
 public:
  CudaError(cudaError_t code, Caller where);
  /// What the call returned.
  [[nodiscard]] cudaError_t code() const noexcept { return code_; }

 private:
  cudaError_t code_;
};

/// Throws CudaError with the caller's file and line unless `status` is success.
void check(cudaError_t status, Caller where = Caller::here());

}  // namespace spillway::um
