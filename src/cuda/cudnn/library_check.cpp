#include "src/cuda/cudnn/library_check.h"

namespace spillway::cuda {

LibraryError::LibraryError(const std::string& text, um::Caller where)
    : um::Error{text + " (at " + where.file + ":" + std::to_string(where.line) + ")"} {}

void check(cudnnStatus_t status, um::Caller where) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  throw LibraryError{std::string{"cuDNN: "} + cudnnGetErrorString(status), where};
}

void check(cublasStatus_t status, um::Caller where) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw LibraryError{std::string{"cuBLASLt: "} + cublasLtGetStatusString(status), where};
}

}  // namespace spillway::cuda
