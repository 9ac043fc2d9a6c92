#pragma once

#include <cublasLt.h>
#include <cudnn.h>

#include <string>

#include "um/error.h"

namespace spillway::cuda {

/// A call of cuDNN or cuBLAS failed. `what()` names the library, its text and the source line.
class LibraryError : public um::Error {
 public:
  LibraryError(const std::string& text, um::Caller where);
};

/// Throws LibraryError with the caller's file and line unless `status` is success.
void check(cudnnStatus_t status, um::Caller where = um::Caller::here());
void check(cublasStatus_t status, um::Caller where = um::Caller::here());

}  // namespace spillway::cuda
