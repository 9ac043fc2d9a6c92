#pragma once

#include <string>
#include <utility>

#include "um/cuda/api.h"

namespace spillway::um {

/// Owns a stream of the driver.
class StreamHandle {
 public:
  StreamHandle(CudaApi& api, const std::string& name)
      : api_{&api}, stream_{api.make_stream(name)} {}
  StreamHandle(StreamHandle&& other) noexcept
      : api_{other.api_}, stream_{std::exchange(other.stream_, nullptr)} {}
  StreamHandle(const StreamHandle&) = delete;
  StreamHandle& operator=(const StreamHandle&) = delete;
  StreamHandle& operator=(StreamHandle&&) = delete;
  ~StreamHandle() {
    if (stream_ != nullptr) api_->end_stream(stream_);
  }
  [[nodiscard]] cudaStream_t get() const { return stream_; }

 private:
  CudaApi* api_;
  cudaStream_t stream_;
};

/// Owns an event of the driver.
class EventHandle {
 public:
  explicit EventHandle(CudaApi& api) : api_{&api}, event_{api.make_event()} {}
  EventHandle(EventHandle&& other) noexcept
      : api_{other.api_}, event_{std::exchange(other.event_, nullptr)} {}
  EventHandle(const EventHandle&) = delete;
  EventHandle& operator=(const EventHandle&) = delete;
  EventHandle& operator=(EventHandle&&) = delete;
  ~EventHandle() {
    if (event_ != nullptr) api_->end_event(event_);
  }
  [[nodiscard]] cudaEvent_t get() const { return event_; }

 private:
  CudaApi* api_;
  cudaEvent_t event_;
};

}  // namespace spillway::um
