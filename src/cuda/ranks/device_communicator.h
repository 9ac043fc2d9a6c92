#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <span>

#include "src/ranks/communicator.h"
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

/// A rank's device, without what other ranks' devices are reached by: of one rank, all there is.
class DeviceCommunicator : public Communicator {
 public:
  /// What it works with.
  struct Device {
    std::unique_ptr<ExchangeStream> stream;
    std::unique_ptr<const NumberKernels> kernels;  ///< on the stream; ends before it
  };
  /// `ranks` are the processes, over which those that are silent are named. It outlives this.
  DeviceCommunicator(Communicator& ranks, Device device, const CommunicatorOptions& options);

  void exchange(SentPieces sends, ReceivedPieces receives) override;
  void sum(std::span<float> numbers) override;
  [[nodiscard]] const NumberKernels& kernels() const override { return *device_.kernels; }
  void finish() override;
  [[noreturn]] void abort(std::string_view sentence) override;
  [[nodiscard]] std::string library() const override { return "none"; }

 protected:
  [[nodiscard]] const ExchangeStream& stream() const { return *device_.stream; }
  [[nodiscard]] Communicator& processes() const { return ranks_; }
  [[nodiscard]] std::chrono::milliseconds time_limit() const { return time_limit_; }
  void copy_own(SentPieces sends, ReceivedPieces receives) const;

 private:
  Communicator& ranks_;
  Device device_;
  std::chrono::milliseconds time_limit_;
};

}  // namespace spillway::cuda
