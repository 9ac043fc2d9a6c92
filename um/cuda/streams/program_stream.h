#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <mutex>
#include <optional>

#include "um/cuda/driver/api.h"
#include "um/cuda/streams/cuda_stream.h"
#include "um/stream.h"

namespace spillway::um {

/// The streams of a program that borrows a device's memory. It outlives them.
///
/// Thread safety: several threads may call it concurrently.
class ProgramStreams {
 public:
  /// `waiting` are the streams that wait for near memory. The arguments outlive this object.
  ProgramStreams(CudaApi& api, ComputeStreams& waiting, bool has_discard)
      : api_{api}, waiting_{waiting}, has_discard_{has_discard} {}

  /// Returns `stream`, which may be the legacy stream, behind the seam. Does not own it.
  [[nodiscard]] std::unique_ptr<ProgramStream> of(cudaStream_t stream);

 private:
  class CudaProgramStream;

  [[nodiscard]] cudaStream_t dropping();

  CudaApi& api_;
  ComputeStreams& waiting_;
  const bool has_discard_;
  std::mutex joining_;  // `waiting_` has a stream of a program only under this mutex
  std::mutex mutex_;    // guards the member below
  std::optional<StreamHandle> dropping_;
};

}  // namespace spillway::um
