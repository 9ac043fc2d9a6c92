#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "um/cuda/driver/api.h"
#include "um/memory.h"

namespace spillway::um {

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

}  // namespace spillway::um
