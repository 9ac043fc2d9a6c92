#pragma once

#include <cstddef>
#include <memory>

#include "src/ops/backend.h"
#include "src/ops/precision.h"
#include "um/device.h"
#include "um/stream.h"

namespace spillway {

/// Something to train on: a device, the kernels that run on it, and the stream they run on.
struct ExecutionContext {
  ExecutionContext() = default;
  ExecutionContext(const ExecutionContext&) = delete;
  ExecutionContext& operator=(const ExecutionContext&) = delete;
  ExecutionContext(ExecutionContext&&) noexcept = default;
  ExecutionContext& operator=(ExecutionContext&&) =
      delete;  // what it had would end in the wrong order
  /// Waits for the stream's work, which uses the backend.
  ~ExecutionContext() {
    if (compute == nullptr) return;
    try {
      compute->synchronize();
    } catch (...) {  // who waited for the work has been told, or nobody asked
    }
  }

  // Of the kernels; bits depend on all of it:
  std::size_t threads = 1;
  Precision precision = Precision::kFp32;
  bool deterministic = false;  ///< only kernels that give the same bits in each run
  std::unique_ptr<um::Device> device;
  std::unique_ptr<um::Stream> compute;  // a GPU's backend ends before the stream it was made for
  std::unique_ptr<Backend> backend;
};

}  // namespace spillway
