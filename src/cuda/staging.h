#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <span>

#include "um/bytes.h"

namespace spillway::cuda {

/// Pinned memory from which a stream copies to the device while the CPU goes on.
class Staging {
 public:
  /// Throws: um::CudaError when the system has no such memory left.
  explicit Staging(um::Bytes size);
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  /// Waits for the copies.
  ~Staging();

  /// Waits until the copies enqueued by append() have been made; afterwards append() begins anew.
  void reclaim();
  /// Enqueues a copy of `source`, which may be changed as soon as the call returns. Requires: all
  /// that was appended since reclaim() fits.
  void append(std::span<const std::byte> source, std::byte* device, cudaStream_t stream);
  /// To be called behind the last append().
  void finish(cudaStream_t stream);

 private:
  struct FreePinned {
    void operator()(std::byte* memory) const noexcept;
  };
  struct DestroyEvent {
    void operator()(cudaEvent_t event) const noexcept;
  };

  std::unique_ptr<std::byte, FreePinned> memory_;
  um::Bytes size_;
  um::Bytes used_;
  std::unique_ptr<CUevent_st, DestroyEvent> copied_;
};

}  // namespace spillway::cuda
