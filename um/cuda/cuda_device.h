#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "um/bytes.h"
#include "um/cuda/driver/api.h"
#include "um/cuda/driver/driver_counters.h"
#include "um/cuda/managed/cuda_managed_memory.h"
#include "um/cuda/streams/cuda_stream.h"
#include "um/device.h"
#include "um/error.h"
#include "um/memory.h"

namespace spillway::um {

/// Plain memory of the GPU, which the driver never moves.
class DeviceMemory final : public Memory {
 public:
  explicit DeviceMemory(CudaApi& api) : api_{api} {}

  /// Throws: OutOfMemory, with what the device has free.
  [[nodiscard]] std::byte* allocate(Bytes size) override;
  void free(std::byte* address, Bytes size) noexcept override;

 private:
  CudaApi& api_;
  std::mutex mutex_;
  std::unordered_map<std::byte*, std::byte*> begins_;  // the driver's address, where it differs
};

/// RAM that the GPU copies to and from by itself. Pinning is slow, so what is freed is kept for the
/// next allocation of the same size until this ends.
class PinnedMemory final : public Memory {
 public:
  explicit PinnedMemory(CudaApi& api) : api_{api} {}
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;
  ~PinnedMemory() override;

  [[nodiscard]] std::byte* allocate(Bytes size) override;
  void free(std::byte* address, Bytes size) noexcept override;

 private:
  CudaApi& api_;
  std::mutex mutex_;
  std::multimap<std::uint64_t, std::byte*> kept_;  // by size
};

/// A Memory as what containers of the standard library allocate from.
///
/// Thread safety: the memory's.
class PmrMemory final : public std::pmr::memory_resource {
 public:
  /// The memory outlives it.
  explicit PmrMemory(Memory& memory) : memory_{memory} {}

 private:
  void* do_allocate(std::size_t size, std::size_t alignment) override {
    expects(alignment <= 4096, "an alignment that every Memory has");
    return memory_.allocate(Bytes{size});
  }
  void do_deallocate(void* address, std::size_t size, std::size_t /*alignment*/) override {
    memory_.free(static_cast<std::byte*>(address), Bytes{size});
  }
  [[nodiscard]] bool do_is_equal(const memory_resource& other) const noexcept override {
    return this == &other;
  }

  Memory& memory_;
};

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

/// The PCI Express link of the device at `bus` ("0000:1B:00.0"), as Linux has it: "32.0 GT/s PCIe
/// x16 (of 32.0 GT/s PCIe x16)". Idle links run slower than they can. Nothing where Linux does not
/// say, as in many containers.
[[nodiscard]] std::optional<std::string> pcie_link(
    const std::string& bus, const std::filesystem::path& devices = "/sys/bus/pci/devices");

}  // namespace spillway::um
