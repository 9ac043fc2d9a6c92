#pragma once

#include <cuda_runtime_api.h>

#include <mutex>

#include "tests/src/cuda/emulated_gpu/card.h"

namespace spillway::emulated {

/// A call of a function of CUDA's runtime: holds the card's mutex for its length.
class EmulatedCall {
 public:
  explicit EmulatedCall(const char* name)
      : lock_{card().mutex}, error_{static_cast<cudaError_t>(begin_call(name))} {}

  /// Returns the error with which the call must fail, which cudaGetLastError() also returns.
  [[nodiscard]] cudaError_t error() const { return error_; }

 private:
  std::lock_guard<std::recursive_mutex> lock_;
  cudaError_t error_;
};

/// Reports a call that a capture in progress forbids to the calling thread, and breaks the capture.
void expect_no_capture(const char* what);

}  // namespace spillway::emulated
