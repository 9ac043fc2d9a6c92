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

/// What one operand of a launch does to one of the pages it touches.
struct PageAccess {
  bool writes;
  bool overwrites;  ///< every byte of the page, and reads none

  [[nodiscard]] static PageAccess of(const Use& use, const PageGrid& grid, PageIndex index) {
    if (use.access != Access::kWrite) {
      return {.writes = use.access == Access::kReadWrite, .overwrites = false};
    }
    const PageSpan whole = grid.covered(use.range);
    return {.writes = true, .overwrites = whole.begin <= index && index < whole.end};
  }
};

/// The pages that may be evicted, in the order in which to do it: those preferred far, then those
/// without such advice, then those preferred near; within each, the one used longest ago first.
///
/// Complexity: O(1) each; allocates only when made.
class EvictionOrder {
 public:
  explicit EvictionOrder(PageIndex pages);

  /// Adds `page` as the one used last of its kind. Requires: it is not in the order.
  void append(PageIndex page, Advice advice) noexcept;
  /// Requires: `page` is in the order.
  void remove(PageIndex page) noexcept;
  /// The page to evict next.
  [[nodiscard]] std::optional<PageIndex> first() const noexcept;

 private:
  /// Neighbours in a ring; each kind of advice has a ring with a head that is no page.
  struct Links {
    std::uint64_t older;
    std::uint64_t newer;
  };

  static constexpr std::uint64_t kRings = 3;

  std::uint64_t pages_;
  std::vector<Links> links_;  // of each page, then of each ring's head
};

/// The slots of near memory: which are free, and the ledger's charge for each that is not.
///
/// Thread safety: one thread at a time. Allocates only when made.
class NearPool {
 public:
  /// The ledger outlives the pool.
  NearPool(SlotIndex slots, Bytes page, Ledger& ledger);
  NearPool(const NearPool&) = delete;
  NearPool& operator=(const NearPool&) = delete;
  /// Releases the charge of all slots in use.
  ~NearPool();

  /// A slot, charged; nothing when all are in use or the ledger is full.
  [[nodiscard]] std::optional<SlotIndex> take() noexcept;
  [[nodiscard]] bool has_free() const noexcept { return !free_.empty(); }
  /// Frees `slot` and releases its charge.
  void give(SlotIndex slot) noexcept;

  /// Releases the charge of a slot that is not free yet: a released page keeps it.
  void set_aside() noexcept;
  /// Charges a slot set aside again; false when the ledger is full.
  [[nodiscard]] bool take_back() noexcept;
  /// Frees a slot set aside.
  void give_aside(SlotIndex slot) noexcept;

 private:
  const SlotIndex slots_;
  const Bytes page_;
  Ledger& ledger_;
  std::size_t aside_ = 0;
  std::vector<SlotIndex> free_;  // the last one given is taken first: its memory may be cached
};

/// The state of every page, the slots of near memory, and the mutex that guards them.
///
/// Mapping a page and unmapping it interrupts all processors. So a discarded page may be released
/// lazily: it stays mapped while nobody needs its slot, and often comes back before.
///
/// Thread safety: lock() from any thread; all else while the lock is held.
class PageTable {
 public:
  using Lock = std::unique_lock<std::mutex>;

  /// `mapper` and `ledger` outlive it.
  PageTable(const PageGeometry& geometry, PageMapper& mapper, Ledger& ledger);

  [[nodiscard]] Lock lock() const { return Lock{mutex_}; }
  /// Wakes who waits for a page to settle, or for a use to end.
  void notify() { changed_.notify_all(); }
  void wait(Lock& lock) { changed_.wait(lock); }
  /// False when nothing changed before `end`.
  bool wait_until(Lock& lock, std::chrono::steady_clock::time_point end) {
    return changed_.wait_until(lock, end) == std::cv_status::no_timeout;
  }
  /// Waits until no thread moves `page`.
  void wait_until_settled(Lock& lock, const Page& page);

  [[nodiscard]] Page& operator[](PageIndex index) { return pages_[index]; }
  [[nodiscard]] const Page& operator[](PageIndex index) const { return pages_[index]; }
  /// Launches under way that declared their uses.
  [[nodiscard]] std::uint64_t launches() const { return launches_; }

  /// A slot, charged, that is free or was released lazily.
  [[nodiscard]] std::optional<SlotIndex> take_free_slot();
  void give_slot(SlotIndex slot) { pool_.give(slot); }
  /// The resident page to evict next, of those not in use.
  [[nodiscard]] std::optional<PageIndex> victim() const { return order_.first(); }

  /// Makes a mapped page resident. Its slot is its own.
  void become_resident(PageIndex index);
  /// Makes a resident page leaving. Requires: it is not in use.
  void become_leaving(PageIndex index);
  /// Makes a page that may be evicted the one used last.
  void renew(PageIndex index);

  /// Requires: the page is resident, without content and not in use.
  void release_lazily(PageIndex index);
  /// Makes a released page resident, without content. False when there is no near memory left to
  /// charge.
  [[nodiscard]] bool reuse_mapping(PageIndex index);
  /// Gives a page that is not near the slot of a released one, where no other is free. False when
  /// that cannot be.
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
