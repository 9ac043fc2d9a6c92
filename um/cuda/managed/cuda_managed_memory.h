#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "um/bytes.h"
#include "um/cuda/driver/api.h"
#include "um/memory.h"

namespace spillway::um {

/// All unified memory of a device. Every allocation is made here, after the check of
/// expect_managed_room().
///
/// Thread safety: several threads may call it concurrently.
class CudaManagedMemory {
 public:
  /// `limit` is the most unified memory at any time.
  CudaManagedMemory(CudaApi& api, std::optional<Bytes> limit) : api_{api}, limit_{limit} {}

  /// Returns memory aligned to 2 MiB, preferred on the device. Throws: Error when the check
  /// refuses; OutOfMemory.
  [[nodiscard]] std::byte* allocate(Bytes size, bool oversubscribe);
  void free(std::byte* address) noexcept;
  /// Counts the bytes that hints have made near.
  [[nodiscard]] Ledger& near() { return near_; }

 private:
  struct Allocation {
    std::byte* begin;  // the driver's address
    Bytes size;        // bytes requested from the driver
  };

  [[nodiscard]] Allocation take(Bytes size, bool oversubscribe);

  CudaApi& api_;
  std::optional<Bytes> limit_;
  std::mutex mutex_;  // guards the members below, so that each check includes earlier allocations
  Bytes taken_;
  Ledger near_{Bytes{std::numeric_limits<std::uint64_t>::max()}};
  std::unordered_map<std::byte*, Allocation> allocations_;  // by aligned address
};

/// Free device memory that unified memory must leave. The driver, libraries and fragmentation use
/// some, and a driver that must evict may hang.
inline constexpr Bytes kManagedMargin = 512_MiB;

/// The inputs of the check on new unified memory.
struct ManagedRoom {
  Bytes free;                  ///< free device memory now
  Bytes taken;                 ///< unified memory that this program has already
  Bytes near;                  ///< the part of it that is near, and therefore not free
  std::optional<Bytes> limit;  ///< on all unified memory together
  bool oversubscribe = false;  ///< skips the check against free memory, not the limit
};

/// Throws: Error, with an alternative, unless `size` more bytes of unified memory may be allocated.
void expect_managed_room(Bytes size, const ManagedRoom& room);

}  // namespace spillway::um
