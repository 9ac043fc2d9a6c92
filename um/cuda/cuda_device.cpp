#include "um/cuda/cuda_device.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <fstream>
#include <new>
#include <utility>

#include "um/cuda/copy_space.h"
#include "um/cuda/driver/capabilities.h"
#include "um/cuda/driver/runtime_api.h"
#include "um/cuda/managed/cuda_managed_memory.h"
#include "um/cuda/managed/cuda_managed_space.h"
#include "um/cuda/streams/cuda_stream.h"
#include "um/error.h"
#include "um/machine/available_memory.h"

namespace spillway::um {
namespace {

constexpr std::uint64_t kDeviceAlignment = 4096;  // Memory's contract; the driver promises less

std::uint64_t misalignment(const std::byte* address) {
  return reinterpret_cast<std::uintptr_t>(address) % kDeviceAlignment;
}

std::unique_ptr<CudaApi> open_api(int ordinal) {
  if (const auto reason = why_unusable(ask_driver(), ordinal)) {
    throw Error{*reason};
  }
  return open_runtime_api(ordinal);
}

std::optional<Bytes> managed_limit(CudaApi& api, const CudaOptions& options) {
  if (!options.managed_share) return options.managed_limit;
  const auto free = static_cast<double>(api.memory().free.count());
  const Bytes share{static_cast<std::uint64_t>(free * *options.managed_share)};
  return std::min(options.managed_limit.value_or(share), share);
}

}  // namespace

std::byte* DeviceMemory::allocate(Bytes size) {
  expects(size > Bytes{}, "an allocation has a size");
  std::byte* address = api_.allocate_device(size);
  if (misalignment(address) == 0) return address;
  api_.free_device(address);
  std::byte* const begin = api_.allocate_device(size + Bytes{kDeviceAlignment});
  address = begin + (kDeviceAlignment - misalignment(begin)) % kDeviceAlignment;
  try {
    const std::lock_guard lock{mutex_};
    begins_.emplace(address, begin);
  } catch (...) {
    api_.free_device(begin);
    throw;
  }
  return address;
}

void DeviceMemory::free(std::byte* address, Bytes /*size*/) noexcept {
  std::byte* begin = address;
  {
    const std::lock_guard lock{mutex_};
    const auto found = begins_.find(address);
    if (found != begins_.end()) {
      begin = found->second;
      begins_.erase(found);
    }
  }
  api_.free_device(begin);
}

std::optional<std::string> pcie_link(const std::string& bus, const std::filesystem::path& devices) {
  std::string folder = bus;
  std::ranges::transform(folder, folder.begin(), [](unsigned char letter) {
    return static_cast<char>(std::tolower(letter));
  });
  const auto first_line = [&](const std::string& name) {
    std::ifstream file{devices / folder / name};
    std::string line;
    std::getline(file, line);
    return line;
  };
  const auto link = [&](const std::string& which) {
    const std::string speed = first_line(which + "_link_speed");
    const std::string width = first_line(which + "_link_width");
    return speed.empty() || width.empty() ? std::string{} : speed + " x" + width;
  };
  const std::string now = link("current");
  const std::string max = link("max");
  if (now.empty()) return std::nullopt;
  return max.empty() ? now : now + " (of " + max + ")";
}

PinnedMemory::~PinnedMemory() {
  for (const auto& [size, address] : kept_) api_.free_pinned(address);
}

std::byte* PinnedMemory::allocate(Bytes size) {
  expects(size > Bytes{}, "an allocation has a size");
  {
    const std::lock_guard lock{mutex_};
    const auto found = kept_.find(size.count());
    if (found != kept_.end()) {
      std::byte* const address = found->second;
      kept_.erase(found);
      return address;
    }
  }
  api_.enter_thread();  // a thread of ours: only trainings pin memory
  return api_.allocate_pinned(size);
}

void PinnedMemory::free(std::byte* address, Bytes size) noexcept {
  const std::lock_guard lock{mutex_};
  try {
    kept_.emplace(size.count(), address);
  } catch (const std::bad_alloc&) {
    api_.free_pinned(address);
  }
}

CudaDevice::CudaDevice(std::unique_ptr<CudaApi> api, const CudaOptions& options)
    : api_{std::move(api)},
      facts_{api_->facts()},
      compute_{*api_},
      apart_{*api_},
      memory_{*api_},
      pinned_{*api_},
      managed_{*api_, managed_limit(*api_, options)},
      counters_{options.counts_faults ? start_driver_counters(facts_.ordinal) : nullptr} {}

std::string CudaDevice::name() const {
  return "cuda:" + std::to_string(facts_.ordinal) + " (" + facts_.name + ", " +
         to_string(facts_.memory) + ")";
}

std::vector<Capability> CudaDevice::capabilities() const {
  return describe(facts_, pcie_link(facts_.pci_bus), why_no_driver_counters());
}

// The driver counts the page cache of an integrated GPU's RAM as used, although the system gives it
// up for allocations.
Bytes CudaDevice::available_memory() const {
  if (!facts_.is_integrated) return saturating_difference(api_->memory().free, kManagedMargin);
  return saturating_difference(std::min(facts_.memory, usable_memory()),
                               kManagedMargin + CudaFileSpace::kPinned);
}

MemoryFacts CudaDevice::memory_facts() const {
  return {.total = facts_.memory,
          .moves_by_hints = moves_by_hints(facts_),
          .hints_reach_files = false,
          .is_host_ram = facts_.is_integrated};
}

std::unique_ptr<CudaStream> CudaDevice::make_cuda_stream(const std::string& name) {
  return std::make_unique<CudaStream>(*api_, compute_, name);
}

std::unique_ptr<ManagedSpace> CudaDevice::make_managed_space(const ManagedOptions& options,
                                                             Ledger& ledger) {
  return std::make_unique<CudaManagedSpace>(*api_, managed_, compute_, counters_.get(), options,
                                            ledger);
}

std::unique_ptr<CopySpace> CudaDevice::make_copy_space(const CopyOptions& options) {
  if (!checked(options, facts_).far.file.empty()) {
    return std::make_unique<CudaFileSpace>(*api_, memory_, pinned_, options);
  }
  return std::make_unique<CudaCopySpace>(*api_, memory_, pinned_, options);
}

std::unique_ptr<CudaDevice> open_cuda_device(int ordinal, const CudaOptions& options) {
  return std::make_unique<CudaDevice>(open_api(ordinal), options);
}

OpenCuda open_cuda(int ordinal, const CudaOptions& options) {
  auto api = open_api(ordinal);
  api->enter_thread();
  OpenCuda open;
  open.device = std::make_unique<CudaDevice>(std::move(api), options);
  open.compute = open.device->make_cuda_stream("compute");
  return open;
}

}  // namespace spillway::um
