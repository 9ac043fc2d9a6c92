#pragma once

#include <string>
#include <utility>

#include "um/cuda/driver/api.h"

namespace spillway::um {

/// Owns an object of the driver, which `kEnd` gives back.
template <class Object, void (CudaApi::*kEnd)(Object) noexcept>
class DriverHandle {
 public:
  DriverHandle(CudaApi& api, Object object) : api_{&api}, object_{object} {}
  DriverHandle(DriverHandle&& other) noexcept
      : api_{other.api_}, object_{std::exchange(other.object_, nullptr)} {}
  DriverHandle(const DriverHandle&) = delete;
  DriverHandle& operator=(const DriverHandle&) = delete;
  DriverHandle& operator=(DriverHandle&&) = delete;
  ~DriverHandle() {
    if (object_ != nullptr) (api_->*kEnd)(object_);
  }
  [[nodiscard]] Object get() const { return object_; }

 private:
  CudaApi* api_;
  Object object_;
};

/// Owns a stream of the driver.
class StreamHandle : public DriverHandle<cudaStream_t, &CudaApi::end_stream> {
 public:
  StreamHandle(CudaApi& api, const std::string& name) : DriverHandle{api, api.make_stream(name)} {}
};

/// Owns an event of the driver.
class EventHandle : public DriverHandle<cudaEvent_t, &CudaApi::end_event> {
 public:
  explicit EventHandle(CudaApi& api) : DriverHandle{api, api.make_event()} {}
};

/// Owns work of the driver that was captured.
using GraphHandle = DriverHandle<cudaGraphExec_t, &CudaApi::end_graph>;

}  // namespace spillway::um
