#pragma once

#include <cstddef>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "um/bytes.h"
#include "um/cuda/driver/api.h"

namespace spillway::um {

/// The unified memory of a device. Nothing else allocates any, and nothing is allocated that the
/// check against free memory (managed_room.h) refuses.
///
/// Thread safety: safe to call from several threads at once.
class CudaManagedMemory {
 public:
  /// `limit`: the most that there may be at any time, whatever callers ask.
  CudaManagedMemory(CudaApi& api, std::optional<Bytes> limit) : api_{api}, limit_{limit} {}

  /// Aligned to 2 MiB, preferred on the device. Throws: Error when the check refuses; OutOfMemory.
  [[nodiscard]] std::byte* allocate(Bytes size, bool oversubscribe);
  void free(std::byte* address) noexcept;

 private:
  struct Allocation {
    std::byte* begin;  // the driver's address
    Bytes size;        // what the driver was asked for
  };

  [[nodiscard]] Allocation take(Bytes size, bool oversubscribe);

  CudaApi& api_;
  std::optional<Bytes> limit_;
  std::mutex mutex_;  // guards what follows, so that each check sees what the last one let pass
  Bytes taken_;
  std::unordered_map<std::byte*, Allocation> allocations_;  // by aligned address
};

}  // namespace spillway::um
