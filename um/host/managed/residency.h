#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <thread>

#include "um/counters.h"
#include "um/hints.h"
#include "um/host/managed/near_room.h"
#include "um/host/managed/page_grid.h"
#include "um/host/managed/page_moves.h"
#include "um/host/managed/page_table.h"
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

  /// Makes a page near that a thread touched. Ends the process when every near page is in use.
  /// Without declared uses, whose check() would tell, it also ends when far memory fails. False:
  /// the page is near, and the program itself has forbidden the touch.
  [[nodiscard]] bool fault(PageIndex index) noexcept;

  /// Brings pages near with their content. Counts those that find no room or that far memory does
  /// not give. Returns the first failure of far memory, else null.
  [[nodiscard]] std::exception_ptr fetch(PageSpan pages) noexcept;
  /// Takes pages away and saves those that are dirty. Leaves out, and counts, pages in use and
  /// those that far memory does not take. Returns as fetch().
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
  /// The stay in which a thread's last fault found a page near.
  struct Finding {
    std::thread::id thread;
    std::uint64_t stay = 0;
  };

  [[nodiscard]] bool touch_near(PageIndex index) noexcept;

  const Nanoseconds fault_latency_;
  const bool releases_lazily_;
  const std::size_t depth_;  // pages that an engine has on their way at once
  PageMapper& mapper_;
  PageTable table_;
  PageMoves moves_;
  NearRoom room_;
  // Findings of the last 64 threads, under the table's lock. Not thread_local: in a library such a
  // variable is allocated at its first use, which is in a handler, or needs static storage, of
  // which the loader keeps little for libraries that the program loads late.
  std::array<Finding, 64> findings_{};
  std::size_t next_finding_ = 0;
};

}  // namespace spillway::um
