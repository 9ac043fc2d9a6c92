#pragma once

#include <memory>

#include "src/cuda/ranks/exchange_stream.h"
#include "src/ranks/communicator.h"

namespace spillway::cuda {

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
