#pragma once

#include <condition_variable>
#include <mutex>

#include "um/cuda/driver/handles.h"
#include "um/stream.h"

namespace spillway::um {

/// An event that the GPU fires: first the stream's thread records it, later the GPU gets there.
/// One whose recording failed has fired: record() has waited for what was before it. When the
/// driver fails, nobody can tell: it has not fired then, and wait() returns; the stream's
/// synchronize() tells why.
class CudaEvent final : public Event {
 public:
  explicit CudaEvent(CudaApi& api) : api_{&api}, event_{api} {}

  /// Called once, by the stream's thread. Throws: CudaError.
  void record(cudaStream_t stream);
  /// Lets later work of `stream` wait; the caller waits until this has been recorded.
  /// Throws: CudaError.
  void make_wait(cudaStream_t stream) const;

  [[nodiscard]] bool has_fired() const override;
  void wait() const override;

 private:
  enum class State { kAhead, kRecorded, kFailed };

  State wait_until_recorded() const;

  CudaApi* api_;
  EventHandle event_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  State state_ = State::kAhead;
};

}  // namespace spillway::um
