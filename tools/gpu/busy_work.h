#pragma once

#include "um/bytes.h"
#include "um/cuda/driver/api.h"
#include "um/memory.h"
#include "um/nanoseconds.h"

namespace spillway::gpu {

/// Work for a stream that takes the GPU a known time: copies within its memory.
class BusyWork {
 public:
  /// Copies `size` bytes at a time, and measures how long one takes. Everything outlives it.
  BusyWork(um::CudaApi& api, um::Memory& device, um::Bytes size);

  /// Gives `stream` work for about `time`, one copy at least; returns before it is done.
  void queue(cudaStream_t stream, um::Nanoseconds time);

 private:
  void copy(cudaStream_t stream);

  um::CudaApi& api_;
  um::Block from_;
  um::Block to_;
  um::Nanoseconds copy_time_{0};
};

}  // namespace spillway::gpu
