#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <span>

#include "src/ranks/communicator.h"
#include "um/cuda/driver/api.h"

namespace spillway::cuda {

/// A device's stream for exchanges between ranks, separate from the kernels' stream. It does not
/// synchronize with other streams: callers ensure that the data they pass is ready.
///
/// Throws: um::CudaError. Thread safety: any thread, but one at a time.
class ExchangeStream {
 public:
  /// Requires: `api` outlives this object.
  explicit ExchangeStream(um::CudaApi& api);

  /// Returns the stream; the calling thread uses the device from then on.
  [[nodiscard]] cudaStream_t enter() const;
  /// Enqueues a copy; a no-op if both places are the same, or if there are no bytes.
  void copy(std::span<const std::byte> from, std::byte* to) const;
  /// Waits until all work so far has ended; returns false after `time_limit`. Calls `look`
  /// repeatedly, which may throw.
  [[nodiscard]] bool wait(std::chrono::milliseconds time_limit,
                          const std::function<void()>& look) const;

 private:
  um::CudaApi& api_;
  um::StreamHandle stream_;
  um::EventHandle event_;
};

/// Polls `has_ended`, ever less often, but at least ten thousand times a second. Returns false
/// after `time_limit`.
[[nodiscard]] bool poll_until(std::chrono::milliseconds time_limit,
                              const std::function<bool()>& has_ended);

/// A rank's device without a connection to other ranks' devices; sufficient for a single rank.
class DeviceCommunicator : public Communicator {
 public:
  /// The parts that the communicator owns.
  struct Device {
    std::unique_ptr<ExchangeStream> stream;
    std::unique_ptr<const NumberKernels> kernels;  ///< on the stream; destroyed before it
  };
  /// `ranks` connects the processes and can name silent ones. It outlives this object.
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
