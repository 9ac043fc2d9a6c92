#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <thread>

#include "um/device.h"
#include "um/hints.h"
#include "um/host/managed/page.h"
#include "um/host/managed/page_mapper.h"
#include "um/host/managed/page_moves.h"
#include "um/host/managed/page_table.h"
#include "um/memory.h"
#include "um/options.h"

namespace spillway::um {

/// Finds slots for pages to bring near: free slots first, then those of evicted pages.
///
/// Thread safety: the caller holds the table's lock, which is released while content moves.
class NearRoom {
 public:
  /// A slot, or the reason why the next page cannot leave, or neither.
  struct Result {
    std::optional<SlotIndex> slot;
    std::exception_ptr failure;
  };

  /// The table and the moves outlive this object.
  NearRoom(bool writes_are_declared, const PageGeometry& geometry, PageTable& table,
           PageMoves& moves);

  /// Serves a hint. Finds nothing when every near page is in use or filling.
  [[nodiscard]] Result find(PageTable::Lock& lock);
  /// Serves a fault. Waits for other launches. Ends the process when there is still no room, or
  /// when content would be lost silently.
  [[nodiscard]] SlotIndex find_or_end(PageTable::Lock& lock) noexcept;

 private:
  [[nodiscard]] Result evict(PageTable::Lock& lock, PageIndex victim);
  [[nodiscard]] std::optional<SlotIndex> evict_unsaved(PageTable::Lock& lock);

  const bool writes_are_declared_;
  const std::string too_small_;
  PageTable& table_;
  PageMoves& moves_;
};

/// The set of near pages and the moves that change it: the state machine of um/README.md. One mutex
/// guards the states; content moves outside it.
///
/// Thread safety: any thread may call every function, and a page-fault handler fault(). Only one
/// thread, their engine's, calls fetch(), and only one calls offload().
class Residency {
 public:
  /// `mapper`, `transfer` and `ledger` outlive this object.
  Residency(const ManagedOptions& options, const PageGeometry& geometry, PageMapper& mapper,
            PageTransfer& transfer, Ledger& ledger);

  /// Makes a touched page near. Ends the process when every near page is in use. Also ends it when
  /// far memory fails without declared uses, since no check() would report that. Returns false when
  /// the page is near and the program itself has forbidden the touch.
  [[nodiscard]] bool fault(PageIndex index) noexcept;

  /// Brings pages near with their content. Counts pages that find no room or that far memory fails
  /// to read. Returns the first failure of far memory, otherwise null.
  [[nodiscard]] std::exception_ptr fetch(PageSpan pages) noexcept;
  /// Removes pages and saves dirty ones. Skips and counts pages in use and pages that far memory
  /// fails to write. Returns the first failure of far memory, otherwise null.
  [[nodiscard]] std::exception_ptr offload(PageSpan pages) noexcept;

  void populate(PageSpan pages);
  /// Throws: ContractError when a page is in use (discards nothing), or when another thread begins
  /// to use a page while this waits for its move (earlier pages are discarded).
  void discard(PageSpan pages);
  void advise(PageSpan pages, Advice advice);
  /// Throws: the first failure of far memory, if any (declares nothing).
  void begin_use(std::span<const Use> operands, const PageGrid& grid);
  void end_use(std::span<const Use> operands, const PageGrid& grid) noexcept;
  /// Throws: like begin_use().
  void check() const;

  [[nodiscard]] Counters counters() const;
  /// Returns the bytes of `range` on resident pages.
  [[nodiscard]] Bytes near_bytes(Range range, const PageGrid& grid) const;

 private:
  /// The stay of the page that a thread's last fault found near.
  struct Finding {
    std::thread::id thread;
    std::uint64_t stay = 0;
  };

  [[nodiscard]] bool touch_near(PageIndex index) noexcept;

  const Nanoseconds fault_latency_;
  const bool releases_lazily_;
  const std::size_t depth_;  // pages that an engine moves at once
  PageMapper& mapper_;
  PageTable table_;
  PageMoves moves_;
  NearRoom room_;
  // Findings of the last 64 threads, under the table's lock. They are not thread_local: in a
  // library, such a variable may be allocated at first use, inside a handler. Otherwise it needs
  // static TLS, which is scarce in libraries loaded late.
  std::array<Finding, 64> findings_{};
  std::size_t next_finding_ = 0;
};

}  // namespace spillway::um
