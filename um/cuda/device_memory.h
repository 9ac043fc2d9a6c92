#pragma once

#include <mutex>
#include <unordered_map>

#include "um/cuda/driver/api.h"
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

}  // namespace spillway::um
