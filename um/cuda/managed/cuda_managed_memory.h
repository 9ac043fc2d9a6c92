#pragma once

#include <algorithm>
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

/// Free device memory that unified memory leaves alone: the driver, the libraries and fragments
/// want some, and a driver that must evict has been seen to hang.
inline constexpr Bytes kManagedMargin = 512_MiB;

/// The most unified memory of a program on a GPU that others use too, while `free` is free there:
/// 16 GiB, and at most a quarter of that.
[[nodiscard]] inline Bytes shared_gpu_limit(Bytes free) {
  return std::min(16_GiB, Bytes{free.count() / 4});
}

/// What decides how much unified memory may be allocated.
struct ManagedRoom {
  Bytes free;                  ///< of the device's memory, now
  Bytes taken;                 ///< by the unified memory that this program has already
  std::optional<Bytes> limit;  ///< on all of it together, whatever else: for tests
  bool oversubscribe = false;  ///< lifts the check against free memory, not the limit
};

/// Throws Error, one sentence with what would work, unless `size` more bytes of unified memory may
/// be allocated.
void expect_managed_room(Bytes size, const ManagedRoom& room);

}  // namespace spillway::um
