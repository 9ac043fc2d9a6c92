#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "um/bytes.h"
#include "um/cuda/driver/cuda_facts.h"
#include "um/hints.h"
#include "um/memory.h"

namespace spillway::um {

/// Near memory as the driver reports it.
struct NearMemory {
  Bytes free;
  Bytes total;
};

/// The only seam to the CUDA driver: thin calls for one device, without decisions. Callers decide
/// on calls, streams, order and waits, so that tests without a GPU can check recorded calls. It has
/// more functions than an interface should have, like the driver.
///
/// Functions throw CudaError when the call fails; functions that end or free objects do not. Ranges
/// of hints lie in one managed allocation. All functions except enter_thread() preserve the calling
/// thread's current device, because the thread may belong to a drop-in user.
///
/// Thread safety: several threads may call it concurrently.
class CudaApi {
 public:
  virtual ~CudaApi() = default;

  [[nodiscard]] virtual CudaFacts facts() = 0;
  [[nodiscard]] virtual NearMemory memory() = 0;
  /// Makes the device current in the calling thread permanently: for threads of ours and threads
  /// that launch kernels. In other threads each call enters the device's context and leaves it. A
  /// failure is reported by the next call.
  virtual void enter_thread() noexcept = 0;

  /// Makes a stream that does not synchronize with others, not even the legacy stream. `name` is
  /// for profilers.
  [[nodiscard]] virtual cudaStream_t make_stream(const std::string& name) = 0;
  virtual void end_stream(cudaStream_t stream) noexcept = 0;
  virtual void synchronize(cudaStream_t stream) = 0;
  /// Works for the legacy stream, too, while a stream that synchronizes with it is captured.
  [[nodiscard]] virtual bool is_captured(cudaStream_t stream) = 0;

  /// Captures what the calling thread submits from now on to `stream` and to streams that wait for
  /// it. Until end_capture() no other thread may submit work to these streams.
  virtual void begin_capture(cudaStream_t stream) = 0;
  /// Returns the captured work, ready to launch; the capture ends even when this throws. Requires:
  /// all joined streams have been waited for.
  [[nodiscard]] virtual cudaGraphExec_t end_capture(cudaStream_t stream) = 0;
  /// Ends a capture and drops its result.
  virtual void abandon_capture(cudaStream_t stream) noexcept = 0;
  /// Submits captured work to `stream` as one piece.
  virtual void launch(cudaGraphExec_t graph, cudaStream_t stream) = 0;
  virtual void end_graph(cudaGraphExec_t graph) noexcept = 0;

  /// Makes an event that records its time; a thread that waits for it sleeps.
  [[nodiscard]] virtual cudaEvent_t make_event() = 0;
  virtual void end_event(cudaEvent_t event) noexcept = 0;
  virtual void record(cudaEvent_t event, cudaStream_t stream) = 0;
  /// Delays later work of `stream` until `event` has fired. Does not block the caller.
  virtual void wait(cudaStream_t stream, cudaEvent_t event) = 0;
  [[nodiscard]] virtual bool has_fired(cudaEvent_t event) = 0;
  /// Blocks the caller until `event` has fired.
  virtual void synchronize(cudaEvent_t event) = 0;
  /// Requires: both events have fired.
  [[nodiscard]] virtual Nanoseconds elapsed(cudaEvent_t from, cudaEvent_t to) = 0;

  [[nodiscard]] virtual std::byte* allocate_device(Bytes size) = 0;
  virtual void free_device(std::byte* address) noexcept = 0;
  [[nodiscard]] virtual std::byte* allocate_managed(Bytes size) = 0;
  virtual void free_managed(std::byte* address) noexcept = 0;
  [[nodiscard]] virtual std::byte* allocate_pinned(Bytes size) = 0;
  virtual void free_pinned(std::byte* address) noexcept = 0;

  /// Copies between any two kinds of memory.
  virtual void copy(std::span<const std::byte> from, std::byte* to, cudaStream_t stream) = 0;

  virtual void prefetch(Range range, MemoryTier tier, cudaStream_t stream) = 0;
  /// Requires: facts().has_discard. The same holds for the next function.
  virtual void discard(std::span<const Range> ranges, cudaStream_t stream) = 0;
  virtual void discard_and_prefetch_near(std::span<const Range> ranges, cudaStream_t stream) = 0;
  virtual void advise(Range range, Advice advice) = 0;

  /// Begins a named range for profilers around the calling thread's calls.
  virtual void begin_label(const std::string& name) = 0;
  virtual void end_label() = 0;
};

/// Owns a driver object, which `kEnd` destroys.
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

/// Owns a stream.
class StreamHandle : public DriverHandle<cudaStream_t, &CudaApi::end_stream> {
 public:
  StreamHandle(CudaApi& api, const std::string& name) : DriverHandle{api, api.make_stream(name)} {}
};

/// Owns an event.
class EventHandle : public DriverHandle<cudaEvent_t, &CudaApi::end_event> {
 public:
  explicit EventHandle(CudaApi& api) : DriverHandle{api, api.make_event()} {}
};

/// Owns captured work.
using GraphHandle = DriverHandle<cudaGraphExec_t, &CudaApi::end_graph>;

/// Waits for all work of `stream`. For callers that must not throw and are about to release what
/// the work uses.
inline void drain(CudaApi& api, cudaStream_t stream) noexcept {
  try {
    api.synchronize(stream);
  } catch (...) {  // the driver has failed: no work is in flight
  }
}

}  // namespace spillway::um
