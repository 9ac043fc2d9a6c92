#include "um/cuda/driver/check.h"

#include <string>

namespace spillway::um {
namespace {

std::string describe(cudaError_t code, Caller where) {
  return std::string{"the GPU failed: "} + cudaGetErrorString(code) + " (" +
         cudaGetErrorName(code) + " at " + where.file + ":" + std::to_string(where.line) + ")";
}

}  // namespace

CudaError::CudaError(cudaError_t code, Caller where) : Error{describe(code, where)}, code_{code} {}

void check(cudaError_t status, Caller where) {
  if (status == cudaSuccess) return;
  (void)cudaGetLastError();  // clears the error: the next call must not report it
  throw CudaError{status, where};
}

}  // namespace spillway::um
