#pragma once

#include <mutex>
#include <vector>

#include "um/cuda/driver/api.h"

namespace spillway::um {

/// The streams of a device that kernels run on, for what all of them have to wait for.
///
/// Thread safety: safe to call from several threads at once.
class ComputeStreams {
 public:
  explicit ComputeStreams(CudaApi& api) : api_{api} {}

  void add(cudaStream_t stream) {
    const std::lock_guard lock{mutex_};
    streams_.push_back(stream);
  }
  void remove(cudaStream_t stream) {
    const std::lock_guard lock{mutex_};
    std::erase(streams_, stream);
  }
  /// What they are given from now on starts only after `event` has fired.
  void wait(cudaEvent_t event) {
    const std::lock_guard lock{mutex_};
    for (auto* const stream : streams_) api_.wait(stream, event);
  }

 private:
  CudaApi& api_;
  std::mutex mutex_;
  std::vector<cudaStream_t> streams_;
};

}  // namespace spillway::um
