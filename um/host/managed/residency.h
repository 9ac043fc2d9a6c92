#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "um/counters.h"
#include "um/hints.h"
#include "um/host/managed/eviction_order.h"
#include "um/host/managed/near_pool.h"
#include "um/host/managed/page.h"
#include "um/host/managed/page_access.h"
#include "um/host/managed/page_grid.h"
#include "um/host/managed/page_mapper.h"
#include "um/host/managed/page_transfer.h"
#include "um/ledger.h"
#include "um/options.h"

namespace spillway::um {

/// Which pages are near, and the moves that change it: the state machine of um/README.md. States
/// change under one mutex; content moves outside it.
///
/// Thread safety: every function may be called from any thread; fault() also from a page-fault
/// handler. fetch() and offload() are each called from one thread only, their engine's.
class Residency {
 public:
  /// `mapper`, `transfer` and `ledger` outlive it.
  Residency(const ManagedOptions& options, const PageGeometry& geometry, PageMapper& mapper,
            PageTransfer& transfer, Ledger& ledger);

  /// Makes a page near that a thread touched. Ends the process when every near page is in use, and
  /// where nobody declares uses, whom check() would tell, when far memory fails.
  void fault(PageIndex index) noexcept;

  /// Brings pages near with their content, and counts those it finds no room for, and those that
  /// far memory does not give. Returns the first failure of far memory, else null.
  [[nodiscard]] std::exception_ptr fetch(PageSpan pages) noexcept;
  /// Takes pages away, saving those that are dirty. Leaves out, and counts, those in use, and those
  /// that far memory does not take.
  [[nodiscard]] std::exception_ptr offload(PageSpan pages) noexcept;

  void populate(PageSpan pages);
  /// Throws: ContractError when one of the pages is in use (nothing discarded), or when another
  /// thread begins to use one while its move is waited for (those before it are discarded).
  void discard(PageSpan pages);
  void advise(PageSpan pages, Advice advice);
  /// Throws: the first failure of far memory there has been (nothing declared).
  void begin_use(std::span<const Use> operands, const PageGrid& grid);
  void end_use(std::span<const Use> operands, const PageGrid& grid) noexcept;
  /// Throws: as begin_use().
  void check() const;

  [[nodiscard]] Counters counters() const;
  /// Bytes of `range` that are on resident pages.
  [[nodiscard]] Bytes near_bytes(Range range, const PageGrid& grid) const;

 private:
  using Lock = std::unique_lock<std::mutex>;

  /// A page on its way: filling or leaving.
  struct Move {
    PageIndex index;
    SlotIndex slot;
    bool is_transferred;  // over the link; else end means nothing
    Link::Clock::time_point end;
    std::exception_ptr failure;
  };
  /// What an engine has on its way, in the order of issue.
  struct Batch {
    std::deque<Move> moves;
    std::exception_ptr failure;  // the first
  };
  /// What a search for room found: a slot; else why the next page cannot leave, or no page at all.
  struct Room {
    std::optional<SlotIndex> slot;
    std::exception_ptr failure;
  };
  enum class Origin { kTransfer, kBlank, kAbandoned };
  enum class Cause { kFault, kHint };

  void wait_until_settled(Lock& lock, const Page& page);
  [[nodiscard]] Room find_room(Lock& lock);
  [[nodiscard]] SlotIndex find_slot_or_die(Lock& lock) noexcept;
  [[nodiscard]] Room evict(Lock& lock, PageIndex victim);
  [[nodiscard]] std::optional<SlotIndex> evict_unsaved(Lock& lock);

  [[nodiscard]] Move start_filling(Lock& lock, PageIndex index, SlotIndex slot, Origin origin);
  void finish_filling(Lock& lock, const Move& move, Cause cause);
  void note_arrival(const Move& move, Cause cause);
  [[nodiscard]] Move start_leaving(Lock& lock, PageIndex index);
  [[nodiscard]] bool finish_leaving(Lock& lock, const Move& move);
  void finish_leaving_and_free(Lock& lock, const Move& move);
  [[nodiscard]] static Move take_first(Batch& batch);

  void refuse(PageIndex index);
  void release_lazily(PageIndex index);
  [[nodiscard]] bool reuse_mapping(PageIndex index);
  [[nodiscard]] bool take_slot(PageIndex index);
  void unmap_released(PageIndex index);
  void renew(PageIndex index);
  void begin_page_use(PageIndex index, PageAccess access);
  void end_page_use(PageIndex index, PageAccess access) noexcept;
  /// A fault outside any declared use may be a write; the first one of a page that is read mostly,
  /// too.
  void note_touch(Page& page) const noexcept;
  void note_failure(const std::exception_ptr& failure);
  /// Requires: the mutex is held. Throws: the first failure.
  void throw_failure() const;

  const Nanoseconds fault_latency_;
  const bool writes_are_declared_;
  const bool keeps_dead_;    // pages mapped that were discarded
  const std::size_t depth_;  // pages that an engine has on their way at once
  const std::string too_small_;
  PageMapper& mapper_;
  PageTransfer& transfer_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;  // a page settled, or a use ended
  std::vector<Page> pages_;
  EvictionOrder order_;  // resident pages without pins
  EvictionOrder dead_;   // dead pages
  NearPool pool_;
  Counters counters_;
  std::exception_ptr failure_;  // the first
  std::uint64_t launches_ = 0;  // uses that have begun and not ended
  std::uint64_t filling_ = 0;   // pages filling that have a slot
  std::uint64_t leaving_ = 0;
};

}  // namespace spillway::um
