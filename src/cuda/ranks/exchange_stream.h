#pragma once

#include <chrono>
#include <functional>
#include <span>

#include "um/cuda/driver/api.h"

namespace spillway::cuda {

/// The stream of a device that exchanges between ranks run on, beside that of the kernels. It waits
/// for no other, and no other for it: who gives it something knows that what that reads is there.
///
/// Throws: um::CudaError. Thread safety: one thread at a time, whichever.
class ExchangeStream {
 public:
  /// `api` outlives it.
  explicit ExchangeStream(um::CudaApi& api);

  /// The stream, for work of the calling thread, which uses the device from then on.
  [[nodiscard]] cudaStream_t enter() const;
  /// Enqueues a copy; nothing where both are one place, or there are no bytes.
  void copy(std::span<const std::byte> from, std::byte* to) const;
  /// Waits until all work so far has ended. False: it had not when `time_limit` passed. Calls
  /// `look` now and then, which may throw.
  [[nodiscard]] bool wait(std::chrono::milliseconds time_limit,
                          const std::function<void()>& look) const;

 private:
  um::CudaApi& api_;
  um::StreamHandle stream_;
  um::EventHandle event_;
};

/// Asks `has_ended` until it says yes, ever less often, but at least ten thousand times a second.
/// False: not when `time_limit` had passed.
[[nodiscard]] bool poll_until(std::chrono::milliseconds time_limit,
                              const std::function<bool()>& has_ended);

}  // namespace spillway::cuda
