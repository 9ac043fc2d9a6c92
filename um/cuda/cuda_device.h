#pragma once

#include <memory>
#include <memory_resource>
#include <optional>
#include <string>
#include <vector>

#include "um/cuda/device_memory.h"
#include "um/cuda/driver/api.h"
#include "um/cuda/driver/driver_counters.h"
#include "um/cuda/managed/cuda_managed_memory.h"
#include "um/cuda/pinned_memory.h"
#include "um/cuda/pmr_memory.h"
#include "um/cuda/streams/compute_streams.h"
#include "um/cuda/streams/cuda_stream.h"
#include "um/device.h"

namespace spillway::um {

/// How a device is opened.
struct CudaOptions {
  /// The most unified memory at any time, oversubscribed or not: for tests and benchmarks.
  std::optional<Bytes> managed_limit;
  /// Others use the GPU too: shared_gpu_limit() when it is opened is a limit as well.
  bool is_shared = false;
  /// Counts page faults and evictions by CUPTI. It costs time.
  bool counts_faults = false;
};

/// A GPU: near memory is its own, far memory is the host's RAM. Streams and spaces end before it.
class CudaDevice final : public Device {
 public:
  /// Throws: Error when faults are to be counted and cannot be.
  CudaDevice(std::unique_ptr<CudaApi> api, const CudaOptions& options);

  [[nodiscard]] std::string name() const override;
  [[nodiscard]] std::vector<Capability> capabilities() const override;
  /// What is free, less the margin that unified memory leaves alone.
  [[nodiscard]] Bytes available_memory() const override;

  /// Not measured.
  [[nodiscard]] Faults faults() const override { return {}; }

  /// A driver evicts only when the whole GPU is full.
  [[nodiscard]] bool evicts() const override { return false; }

  void prepare_kernel_thread() override {}  // page faults are the GPU's
  [[nodiscard]] std::unique_ptr<Stream> make_stream(const std::string& name) override {
    return make_cuda_stream(name);
  }
  [[nodiscard]] std::unique_ptr<Stream> make_copy_stream(const std::string& name) override {
    return std::make_unique<CudaStream>(*api_, apart_, name);
  }
  [[nodiscard]] Memory& memory() override { return memory_; }
  [[nodiscard]] std::unique_ptr<ManagedSpace> make_managed_space(const ManagedOptions& options,
                                                                 Ledger& ledger) override;
  [[nodiscard]] std::unique_ptr<CopySpace> make_copy_space(const CopyOptions& options) override;

  /// As make_stream(); a backend launches kernels on its native().
  [[nodiscard]] std::unique_ptr<CudaStream> make_cuda_stream(const std::string& name);
  /// An event that fires when the work so far of a stream, which may be another's, has ended. It
  /// ends before the device.
  [[nodiscard]] std::unique_ptr<const Event> record(cudaStream_t stream);
  /// RAM that the GPU copies to and from by itself.
  [[nodiscard]] Memory& pinned_memory() { return pinned_; }
  /// The same for containers of the standard library: batches on their way in.
  [[nodiscard]] std::pmr::memory_resource& batch_memory() { return batch_memory_; }
  [[nodiscard]] const CudaFacts& facts() const { return facts_; }
  /// Its driver, for streams that are nobody's but their owner's.
  [[nodiscard]] CudaApi& api() { return *api_; }
  /// Null unless CudaOptions asked for them.
  [[nodiscard]] DriverCounters* driver_counters() { return counters_.get(); }

 private:
  const std::unique_ptr<CudaApi> api_;
  const CudaFacts facts_;
  ComputeStreams compute_;
  ComputeStreams apart_;  // nobody lets these wait
  DeviceMemory memory_;
  PinnedMemory pinned_;
  PmrMemory batch_memory_{pinned_};
  CudaManagedMemory managed_;
  std::unique_ptr<DriverCounters> counters_;
};

/// Opens device number `ordinal`. Throws: Error, one sentence that says what to do, when there is
/// no driver, no such GPU, or the driver is too old.
[[nodiscard]] std::unique_ptr<CudaDevice> open_cuda_device(int ordinal,
                                                           const CudaOptions& options = {});

/// A device and the stream that kernels run on.
struct OpenCuda {
  std::unique_ptr<CudaDevice> device;
  std::unique_ptr<CudaStream> compute;  // last: it ends first
};

/// As open_cuda_device(), with its compute stream, for a program of our own: the calling thread
/// uses the device from then on, and may launch kernels.
[[nodiscard]] OpenCuda open_cuda(int ordinal, const CudaOptions& options = {});

}  // namespace spillway::um
