#pragma once

#include <functional>

#include "tools/gpu/busy_work.h"
#include "um/cuda/driver/api.h"
#include "um/cuda/driver/handles.h"

namespace spillway::gpu {

/// How long a call of the driver takes the GPU, and how long whoever makes it.
struct MoveTime {
  double stream_seconds;  ///< on the stream, between events around the call
  double host_seconds;    ///< until the call returned
};

/// Times calls that move memory, one at a time, on a stream of its own.
class MoveTimer {
 public:
  /// Everything outlives it.
  MoveTimer(um::CudaApi& api, BusyWork& work) : api_{api}, work_{work} {}

  /// Makes the call on an idle stream or behind 20 ms of work, and waits for its end.
  [[nodiscard]] MoveTime time(const std::function<void(cudaStream_t)>& call, bool behind_work);
  /// The same on an idle stream, whose times nobody wants.
  void run(const std::function<void(cudaStream_t)>& call);

 private:
  um::CudaApi& api_;
  BusyWork& work_;
  um::StreamHandle stream_{api_, "moves"};
  um::EventHandle begin_{api_};
  um::EventHandle end_{api_};
};

}  // namespace spillway::gpu
