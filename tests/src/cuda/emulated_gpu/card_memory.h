#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/src/cuda/emulated_gpu/card_settings.h"

namespace spillway::emulated {

enum class BlockKind { kDevice, kManaged, kPinned };

/// A page of managed memory: the driver's unit of 2 MiB.
struct ManagedPage {
  bool is_near = false;
  bool has_content = false;        ///< written or populated since it was made or discarded
  int device = 0;                  ///< where it is near
  std::uint64_t last_arrival = 0;  ///< eviction takes the oldest
};

inline constexpr std::size_t kManagedPageBytes = 2U << 20U;

struct Block {
  std::byte* begin = nullptr;
  std::size_t size = 0;
  BlockKind kind = BlockKind::kDevice;
  int device = 0;                  ///< where it was allocated
  bool is_leaving = false;         ///< a stream will free it
  std::vector<ManagedPage> pages;  ///< of managed memory
};

/// Bytes that moved, and page faults, since the process began.
struct MemoryCounts {
  std::uint64_t device_faults = 0;  ///< accesses of kernels to pages that were far
  std::uint64_t faulted_bytes = 0;  ///< far to near by them, pages with content only
  std::uint64_t evicted_bytes = 0;
  std::uint64_t prefetched_bytes = 0;  ///< far to near by hints, pages with content only
  std::uint64_t offloaded_bytes = 0;   ///< near to far by hints
  std::uint64_t discarded_bytes = 0;
  std::size_t near_bytes = 0;  ///< device memory and near pages, now
  std::size_t near_peak = 0;
  std::size_t asked_bytes = 0;  ///< the same without rounding up device memory
  std::size_t asked_peak = 0;
  std::size_t device_bytes = 0;  ///< device memory alone, rounded up as the driver does
  std::size_t device_peak = 0;
  std::size_t pinned_bytes = 0;
  std::size_t pinned_peak = 0;
};

/// The memory that CUDA gives out: addresses that are never given out again, poisoned contents, and
/// managed pages that are near or far. The functions check nothing that the caller has to check.
///
/// Thread safety: none; Card's mutex guards it.
class CardMemory {
 public:
  explicit CardMemory(const CardSettings& settings);

  /// Returns nullptr if the device has no room.
  [[nodiscard]] std::byte* allocate(BlockKind kind, std::size_t size, int device);
  /// Requires: a block of that kind begins there.
  void free(std::byte* address);
  /// Returns the block that contains all of these bytes, or nullptr.
  [[nodiscard]] Block* find(const void* begin, std::size_t size) {
    Block* const block = recent(begin);
    return block != nullptr && contains(*block, begin, size) ? block : look_up(begin, size);
  }
  [[nodiscard]] const std::map<const std::byte*, Block>& blocks() const { return blocks_; }
  /// Returns true if the address lies where all blocks lie, live or freed.
  [[nodiscard]] bool is_of_card(const void* address) const {
    return static_cast<std::size_t>(static_cast<const std::byte*>(address) - region_) <
           kRegionBytes;
  }

  // Pages of managed memory that the bytes touch. Each requires: the block contains the bytes.

  /// Moves them near, or far; what does not fit evicts other pages. Where hints are ignored, pages
  /// come near by faults alone.
  void bring(Block& block, const void* begin, std::size_t size, int device);
  void send(Block& block, const void* begin, std::size_t size);
  /// Drops their content: it is poisoned, and the pages are far.
  void discard(Block& block, const void* begin, std::size_t size);
  /// Returns true if they lie in one page that is near, or in memory without pages.
  [[nodiscard]] static bool is_at_hand(const Block& block, const void* begin, std::size_t size,
                                       int device) {
    if (block.kind != BlockKind::kManaged) return true;
    const auto offset =
        static_cast<std::size_t>(static_cast<const std::byte*>(begin) - block.begin);
    const std::size_t page = offset / kManagedPageBytes;
    return (offset + size - 1) / kManagedPageBytes == page && block.pages[page].is_near &&
           block.pages[page].device == device;
  }
  /// Notes that a kernel or a library's function accesses them: pages that are far fault.
  void touch(Block& block, const void* begin, std::size_t size, int device, bool writes);

  [[nodiscard]] std::size_t free_bytes(int device) const;
  [[nodiscard]] const MemoryCounts& counts() const { return counts_; }

 private:
  static constexpr std::size_t kRegionBytes = std::size_t{1} << 43U;

  static bool contains(const Block& block, const void* begin, std::size_t size) {
    const auto* const first = static_cast<const std::byte*>(begin);
    return first >= block.begin && first + size <= block.begin + block.size;
  }
  /// The block that was found last in such a page; pages belong to one block each.
  [[nodiscard]] Block*& recent(const void* address) {
    return recent_[reinterpret_cast<std::uintptr_t>(address) / kManagedPageBytes % recent_.size()];
  }
  [[nodiscard]] Block* look_up(const void* begin, std::size_t size);
  template <class Visit>
  static void each_page(Block& block, const void* begin, std::size_t size, const Visit& visit);
  void make_near(ManagedPage& page, int device);
  void make_far(ManagedPage& page);
  void make_room(int device);
  [[nodiscard]] std::size_t used(int device) const;
  void note_near();

  const std::size_t memory_;
  const std::size_t misalignment_;
  const bool is_poisoned_;
  const bool ignores_hints_;
  std::byte* region_ = nullptr;
  std::size_t taken_ = 0;  // bytes of the region given out
  std::map<const std::byte*, Block> blocks_;
  std::vector<std::size_t> used_;  // by device
  std::uint64_t arrivals_ = 0;
  std::array<Block*, 256> recent_ = {};
  MemoryCounts counts_;
};

}  // namespace spillway::emulated
