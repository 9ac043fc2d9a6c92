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

/// Near memory as the driver counts it.
struct NearMemory {
  Bytes free;
  Bytes total;
};

/// The one seam to the CUDA driver: a call each, for one device, without a decision. Everything
/// that is decided (which call, which stream, what order, who waits) is decided above it, so that
/// tests without a GPU see it in the calls that a recording implementation notes. Longer than an
/// interface should be, as the driver's is.
///
/// Every function but the ends throws CudaError when the call fails. Ranges of hints lie in one
/// managed allocation. Every function but enter_thread() leaves the calling thread's current device
/// as it was: the thread may be of a program that the drop-in serves.
///
/// Thread safety: safe to call from several threads at once.
class CudaApi {
 public:
  virtual ~CudaApi() = default;

  [[nodiscard]] virtual CudaFacts facts() = 0;
  [[nodiscard]] virtual NearMemory memory() = 0;
  /// Makes the device the calling thread's current one, for good: for threads that launch kernels,
  /// and for those of our own. In another thread each call chooses the device and then the one
  /// before again, which makes a context on that one. A device that fails says so at the next call.
  virtual void enter_thread() noexcept = 0;

  /// A stream that waits for no other, the legacy stream least of all. `name` is for profilers.
  [[nodiscard]] virtual cudaStream_t make_stream(const std::string& name) = 0;
  virtual void end_stream(cudaStream_t stream) noexcept = 0;
  virtual void synchronize(cudaStream_t stream) = 0;
  /// Also of the legacy stream, while a stream that waits for it is being captured.
  [[nodiscard]] virtual bool is_captured(cudaStream_t stream) = 0;

  /// What the calling thread gives to `stream` from now on, and to streams that wait for it, is
  /// kept instead of done. Until end_capture() no other thread may give them anything.
  virtual void begin_capture(cudaStream_t stream) = 0;
  /// What was kept, ready to be launched. Requires: the streams that joined have been waited for.
  [[nodiscard]] virtual cudaGraphExec_t end_capture(cudaStream_t stream) = 0;
  /// Ends a capture of which nothing is wanted.
  virtual void abandon_capture(cudaStream_t stream) noexcept = 0;
  /// Gives everything that was kept to `stream`, as one piece of work.
  virtual void launch(cudaGraphExec_t graph, cudaStream_t stream) = 0;
  virtual void end_graph(cudaGraphExec_t graph) noexcept = 0;

  /// An event that keeps its time, and whose waiter sleeps.
  [[nodiscard]] virtual cudaEvent_t make_event() = 0;
  virtual void end_event(cudaEvent_t event) noexcept = 0;
  virtual void record(cudaEvent_t event, cudaStream_t stream) = 0;
  /// Later work of `stream` starts only after `event` has fired. The caller does not wait.
  virtual void wait(cudaStream_t stream, cudaEvent_t event) = 0;
  [[nodiscard]] virtual bool has_fired(cudaEvent_t event) = 0;
  /// The caller waits.
  virtual void synchronize(cudaEvent_t event) = 0;
  /// Requires: both have fired.
  [[nodiscard]] virtual Nanoseconds elapsed(cudaEvent_t from, cudaEvent_t to) = 0;

  [[nodiscard]] virtual std::byte* allocate_device(Bytes size) = 0;
  virtual void free_device(std::byte* address) noexcept = 0;
  [[nodiscard]] virtual std::byte* allocate_managed(Bytes size) = 0;
  virtual void free_managed(std::byte* address) noexcept = 0;
  [[nodiscard]] virtual std::byte* allocate_pinned(Bytes size) = 0;
  virtual void free_pinned(std::byte* address) noexcept = 0;

  /// Between any two kinds of memory.
  virtual void copy(std::span<const std::byte> from, std::byte* to, cudaStream_t stream) = 0;

  virtual void prefetch(Range range, MemoryTier tier, cudaStream_t stream) = 0;
  /// Requires: facts().has_discard, and so for the next.
  virtual void discard(std::span<const Range> ranges, cudaStream_t stream) = 0;
  virtual void discard_and_prefetch_near(std::span<const Range> ranges, cudaStream_t stream) = 0;
  virtual void advise(Range range, Advice advice) = 0;

  /// A named range in the pictures of profilers, around what the calling thread does.
  virtual void begin_label(const std::string& name) = 0;
  virtual void end_label() = 0;
};

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

/// Waits for all work of `stream`, for who is about to give up what it uses and cannot throw.
inline void drain(CudaApi& api, cudaStream_t stream) noexcept {
  try {
    api.synchronize(stream);
  } catch (...) {  // the driver has failed: nothing is under way
  }
}

}  // namespace spillway::um
