#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "um/bytes.h"
#include "um/hints.h"
#include "um/host/managed/page.h"
#include "um/host/managed/page_mapper.h"
#include "um/memory.h"

namespace spillway::um {

/// The effect of one operand of a launch on one page that it overlaps.
struct PageAccess {
  bool writes;
  bool overwrites;  ///< overwrites every byte of the page, reads none

  [[nodiscard]] static PageAccess of(const Use& use, const PageGrid& grid, PageIndex index) {
    if (use.access != Access::kWrite) {
      return {.writes = use.access == Access::kReadWrite, .overwrites = false};
    }
    const PageSpan whole = grid.covered(use.range);
    return {.writes = true, .overwrites = whole.begin <= index && index < whole.end};
  }
};

/// Evictable pages in eviction order: pages preferred far, then without advice, then preferred
/// near. Each group is in least-recently-used order.
///
/// Complexity: O(1) per call; allocates only on construction.
class EvictionOrder {
 public:
  explicit EvictionOrder(PageIndex pages);

  /// Adds `page` as the most recently used of its group. Requires: it is not in the order.
  void append(PageIndex page, Advice advice) noexcept;
  /// Requires: `page` is in the order.
  void remove(PageIndex page) noexcept;
  /// Returns the page to evict next.
  [[nodiscard]] std::optional<PageIndex> first() const noexcept;

 private:
  /// Neighbours in a ring. Each group has a ring with a head that is not a page.
  struct Links {
    std::uint64_t older;
    std::uint64_t newer;
  };

  static constexpr std::uint64_t kRings = 3;

  std::uint64_t pages_;
  std::vector<Links> links_;  // per page, then per ring head
};

/// The slots of near memory: the free ones, and the ledger's charge for all others.
///
/// Thread safety: one thread at a time. Allocates only on construction.
class NearPool {
 public:
  /// The ledger outlives the pool.
  NearPool(SlotIndex slots, Bytes page, Ledger& ledger);
  NearPool(const NearPool&) = delete;
  NearPool& operator=(const NearPool&) = delete;
  /// Releases the charge of all used slots.
  ~NearPool();

  /// Returns a charged slot; nullopt when all are in use or the ledger is full.
  [[nodiscard]] std::optional<SlotIndex> take() noexcept;
  [[nodiscard]] bool has_free() const noexcept { return !free_.empty(); }
  /// Frees `slot` and releases its charge.
  void give(SlotIndex slot) noexcept;

  /// Releases the charge of a slot that is not free yet: the slot of a released page.
  void set_aside() noexcept;
  /// Charges a slot again that was set aside; returns false when the ledger is full.
  [[nodiscard]] bool take_back() noexcept;
  /// Frees a slot that was set aside.
  void give_aside(SlotIndex slot) noexcept;

 private:
  const SlotIndex slots_;
  const Bytes page_;
  Ledger& ledger_;
  std::size_t aside_ = 0;
  std::vector<SlotIndex> free_;  // last in, first out: the memory may still be cached
};

/// The state of every page, the slots of near memory, and the mutex that guards both.
///
/// Mapping and unmapping interrupt all processors. A discarded page may therefore be released
/// lazily: it stays mapped until its slot is needed, and often returns before.
///
/// Thread safety: any thread may call lock(); all other calls require the lock.
class PageTable {
 public:
  using Lock = std::unique_lock<std::mutex>;

  /// `mapper` and `ledger` outlive it.
  PageTable(const PageGeometry& geometry, PageMapper& mapper, Ledger& ledger);

  [[nodiscard]] Lock lock() const { return Lock{mutex_}; }
  /// Wakes threads that wait for a page to settle or a use to end.
  void notify() { changed_.notify_all(); }
  void wait(Lock& lock) { changed_.wait(lock); }
  /// Returns false when nothing changed before `end`.
  bool wait_until(Lock& lock, std::chrono::steady_clock::time_point end) {
    return changed_.wait_until(lock, end) == std::cv_status::no_timeout;
  }
  /// Waits until no thread moves `page`.
  void wait_until_settled(Lock& lock, const Page& page);

  [[nodiscard]] Page& operator[](PageIndex index) { return pages_[index]; }
  [[nodiscard]] const Page& operator[](PageIndex index) const { return pages_[index]; }
  /// Returns the number of launches in flight with declared uses.
  [[nodiscard]] std::uint64_t launches() const { return launches_; }

  /// Returns a charged slot that is free or was released lazily.
  [[nodiscard]] std::optional<SlotIndex> take_free_slot();
  void give_slot(SlotIndex slot) { pool_.give(slot); }
  /// Returns the resident page to evict next, among pages not in use.
  [[nodiscard]] std::optional<PageIndex> victim() const { return order_.first(); }

  /// Makes a mapped page resident. The page owns its slot.
  void become_resident(PageIndex index);
  /// Changes a resident page to leaving. Requires: it is not in use.
  void become_leaving(PageIndex index);
  /// Makes an evictable page the most recently used.
  void renew(PageIndex index);

  /// Requires: the page is resident, has no content and is not in use.
  void release_lazily(PageIndex index);
  /// Makes a released page resident without content. Returns false when the ledger is full.
  [[nodiscard]] bool reuse_mapping(PageIndex index);
  /// Gives a page that is not near the slot of a released page if no other slot is free. Returns
  /// false when that is impossible.
  [[nodiscard]] bool take_slot(PageIndex index);
  /// Unmaps a released page and frees its slot.
  void unmap_released(PageIndex index);

  void begin_use(std::span<const Use> operands, const PageGrid& grid);
  void end_use(std::span<const Use> operands, const PageGrid& grid) noexcept;

 private:
  void begin_page_use(PageIndex index, PageAccess access);
  void end_page_use(PageIndex index, PageAccess access) noexcept;

  PageMapper& mapper_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Page> pages_;
  EvictionOrder order_;     // resident pages without pins
  EvictionOrder released_;  // released pages
  NearPool pool_;
  std::uint64_t launches_ = 0;
};

}  // namespace spillway::um
