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
#include "um/cuda/streams/program_stream.h"
#include "um/device.h"
#include "um/error.h"
#include "um/memory.h"

namespace spillway::um {

/// Plain GPU memory, which the driver never moves.
class DeviceMemory final : public Memory {
 public:
  explicit DeviceMemory(CudaApi& api) : api_{api} {}

  /// Throws: OutOfMemory that names the free device memory.
  [[nodiscard]] std::byte* allocate(Bytes size) override;
  void free(std::byte* address, Bytes size) noexcept override;

 private:
  CudaApi& api_;
  std::mutex mutex_;
  std::unordered_map<std::byte*, std::byte*> begins_;  // the driver's address, if different
};

/// RAM that the GPU can copy to and from directly. Pinning is slow, so freed blocks are kept until
/// destruction, for later allocations of the same size.
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

/// Adapts a Memory to std::pmr::memory_resource.
///
/// Thread safety: that of the memory.
class PmrMemory final : public std::pmr::memory_resource {
 public:
  /// The memory outlives this object.
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

/// Options of a CUDA device.
struct CudaOptions {
  /// The most unified memory at any time, oversubscribed or not.
  std::optional<Bytes> managed_limit;
  /// A further limit: this part of the memory that is free when the device is opened.
  std::optional<double> managed_share;
  /// Counts page faults and evictions by CUPTI, which costs time.
  bool counts_faults = false;
};

/// A GPU: near memory is GPU memory, far memory is the host's RAM. It outlives its streams and
/// spaces.
class CudaDevice final : public Device {
 public:
  /// Throws: Error when `options` ask for fault counters that are unavailable.
  CudaDevice(std::unique_ptr<CudaApi> api, const CudaOptions& options);

  [[nodiscard]] std::string name() const override;
  [[nodiscard]] std::vector<Capability> capabilities() const override;
  /// Returns the free memory less the margin kept for other uses than unified memory. Free memory
  /// of an integrated GPU is the RAM that is available, less what copies to a file pin.
  [[nodiscard]] Bytes available_memory() const override;
  [[nodiscard]] MemoryFacts memory_facts() const override;

  /// Returns defaults, since nothing was measured.
  [[nodiscard]] Faults faults() const override { return {}; }

  /// Returns false: a driver evicts only when the whole GPU is full.
  [[nodiscard]] bool evicts() const override { return false; }

  void prepare_kernel_thread() override {}  // the GPU handles page faults
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

  /// Like make_stream(); a backend launches kernels on its native().
  [[nodiscard]] std::unique_ptr<CudaStream> make_cuda_stream(const std::string& name);
  /// Returns a stream that a program owns. The device outlives it.
  [[nodiscard]] std::unique_ptr<ProgramStream> program_stream(cudaStream_t stream) {
    return programs_.of(stream);
  }
  /// RAM that the GPU can copy to and from directly.
  [[nodiscard]] Memory& pinned_memory() { return pinned_; }
  /// Pinned memory for containers of the standard library: batches on their way to the GPU.
  [[nodiscard]] std::pmr::memory_resource& batch_memory() { return batch_memory_; }
  [[nodiscard]] const CudaFacts& facts() const { return facts_; }
  /// The driver interface, for private streams of a caller.
  [[nodiscard]] CudaApi& api() { return *api_; }
  /// Returns null unless CudaOptions asked for counters.
  [[nodiscard]] DriverCounters* driver_counters() { return counters_.get(); }

 private:
  const std::unique_ptr<CudaApi> api_;
  const CudaFacts facts_;
  ComputeStreams compute_;
  ComputeStreams apart_;  // streams that never wait for unified memory
  ProgramStreams programs_{*api_, compute_, facts_.has_discard};
  DeviceMemory memory_;
  PinnedMemory pinned_;
  PmrMemory batch_memory_{pinned_};
  CudaManagedMemory managed_;
  std::unique_ptr<DriverCounters> counters_;
};

/// Opens device number `ordinal`. Throws: Error with advice when the driver or the GPU is missing
/// or the driver is too old.
[[nodiscard]] std::unique_ptr<CudaDevice> open_cuda_device(int ordinal,
                                                           const CudaOptions& options = {});

/// A device with the stream that runs kernels.
struct OpenCuda {
  std::unique_ptr<CudaDevice> device;
  std::unique_ptr<CudaStream> compute;  // last: destroyed first
};

/// Opens a device with its compute stream. The device becomes current in the calling thread, which
/// may launch kernels. For our own programs.
[[nodiscard]] OpenCuda open_cuda(int ordinal, const CudaOptions& options = {});

/// Returns the PCI Express link of the device at `bus` ("0000:1B:00.0") as Linux reports it: "32.0
/// GT/s PCIe x16 (of 32.0 GT/s PCIe x16)". An idle link reports a lower speed. Returns nullopt when
/// Linux does not report it, as in many containers.
[[nodiscard]] std::optional<std::string> pcie_link(
    const std::string& bus, const std::filesystem::path& devices = "/sys/bus/pci/devices");

}  // namespace spillway::um
