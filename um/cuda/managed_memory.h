#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "um/bytes.h"
#include "um/cuda/api.h"

namespace spillway::um {

/// The unified memory of a device. Nothing else allocates any, and nothing is allocated that the
/// check against free memory (managed_room.h) refuses.
///
/// Thread safety: safe to call from several threads at once, but two checks at the same time do not
/// see each other's memory.
class CudaManagedMemory {
 public:
  /// `limit`: the most that there may be at any time, whatever callers ask.
  CudaManagedMemory(CudaApi& api, std::optional<Bytes> limit) : api_{api}, limit_{limit} {}

  /// Aligned to 2 MiB, preferred on the device. Throws: Error when the check refuses; OutOfMemory.
  [[nodiscard]] std::byte* allocate(Bytes size, bool oversubscribe);
  void free(std::byte* address, Bytes size) noexcept;

 private:
  CudaApi& api_;
  std::optional<Bytes> limit_;
  std::atomic<std::uint64_t> taken_{0};
};

}  // namespace spillway::um
