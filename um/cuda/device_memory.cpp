#include "um/cuda/device_memory.h"

#include <cstdint>

#include "um/error.h"

namespace spillway::um {
namespace {

constexpr std::uint64_t kAlignment = 4096;  // Memory's; the driver promises less

std::uint64_t misalignment(const std::byte* address) {
  return reinterpret_cast<std::uintptr_t>(address) % kAlignment;
}

}  // namespace

std::byte* DeviceMemory::allocate(Bytes size) {
  expects(size > Bytes{}, "an allocation has a size");
  std::byte* address = api_.allocate_device(size);
  if (misalignment(address) == 0) return address;
  api_.free_device(address);
  std::byte* const begin = api_.allocate_device(size + Bytes{kAlignment});
  address = begin + (kAlignment - misalignment(begin)) % kAlignment;
  const std::lock_guard lock{mutex_};
  begins_.emplace(address, begin);
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

}  // namespace spillway::um
