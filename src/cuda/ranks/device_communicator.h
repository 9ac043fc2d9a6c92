#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>

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

/// Name that the system's library search resolves.
inline constexpr const char* kNcclLibrary = "libnccl.so.2";

/// Returns a communicator for the near memory of ranks; `api` is this rank's device. Collective
/// over `ranks`. Requires: `api` and `ranks` outlive it. All ranks have exchanged data on return,
/// so that NCCL has allocated its device memory. Throws: um::Error, one sentence that says what to
/// do, if two ranks use the same GPU, NCCL is not in `library`, or GPUs do not reach each other.
[[nodiscard]] std::unique_ptr<Communicator> join_devices(um::CudaApi& api, Communicator& ranks,
                                                         const CommunicatorOptions& options,
                                                         const std::string& library = kNcclLibrary);

/// Throws: um::Error that names them, if two ranks of one node use the same GPU. `gpus` are UUIDs
/// or PCI bus addresses, by rank. Slices of a GPU (MIG) have UUIDs of their own.
void expect_gpu_each(std::span<const std::string> nodes, std::span<const std::string> gpus);

/// Joins the devices of several ranks with NCCL from `library`; collective over `ranks`. Throws:
/// um::Error, one sentence that says what to do, if NCCL is missing or this build is without it.
[[nodiscard]] std::unique_ptr<Communicator> join_nccl(Communicator& ranks,
                                                      DeviceCommunicator::Device device,
                                                      const CommunicatorOptions& options,
                                                      const std::string& library);

}  // namespace spillway::cuda
