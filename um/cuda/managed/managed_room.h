#pragma once

#include <algorithm>
#include <optional>

#include "um/bytes.h"

namespace spillway::um {

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
