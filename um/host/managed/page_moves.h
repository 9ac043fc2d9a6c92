#pragma once

#include <cstdint>
#include <exception>
#include <memory>

#include "um/bytes.h"
#include "um/device.h"
#include "um/host/far/far_store.h"
#include "um/host/far/link.h"
#include "um/host/managed/page.h"
#include "um/host/managed/page_mapper.h"
#include "um/host/managed/page_table.h"
#include "um/options.h"

namespace spillway::um {

/// Moves content between slots and far memory over the link. Each page has its own far offset.
///
/// Thread safety: calls for different pages and slots may run concurrently, also in page-fault
/// handlers: they hold no lock and allocate nothing, unless far memory fails.
class PageTransfer {
 public:
  /// The transfer of one page over the link.
  struct Result {
    Link::Clock::time_point end;  ///< when the link will have moved the page
    std::exception_ptr failure;   ///< null on success
  };

  /// `mapper` outlives it.
  PageTransfer(const ManagedOptions& options, const PageMapper& mapper,
               std::unique_ptr<FarStore> far);

  [[nodiscard]] FarStore& far() const { return *far_; }

  /// Reads `page` from far memory into `slot`. On failure the slot is blank.
  [[nodiscard]] Result read(PageIndex page, SlotIndex slot) noexcept;
  /// Writes `slot` to the far memory of `page`.
  [[nodiscard]] Result write(PageIndex page, SlotIndex slot) noexcept;
  /// Fills `slot` with zeros, or with NaNs if the space is poisoned.
  void blank(SlotIndex slot) const noexcept;
  /// Prepares `slot` for a page that will be overwritten. The slot may keep another page's content,
  /// but is blanked if the space is poisoned.
  void abandon(SlotIndex slot) const noexcept {
    if (is_poisoned_) blank(slot);
  }

 private:
  const PageMapper& mapper_;
  const Bytes page_;
  const bool is_poisoned_;
  const std::unique_ptr<FarStore> far_;
  Link in_;
  Link out_;
};

/// Fills pages and removes them. Functions that take the lock release it while they move content.
///
/// Thread safety: the caller holds the table's lock in every call.
class PageMoves {
 public:
  using Lock = PageTable::Lock;

  /// A page that is filling or leaving.
  struct Move {
    PageIndex index;
    SlotIndex slot;
    bool is_transferred;  ///< over the link; otherwise `end` is undefined
    Link::Clock::time_point end;
    std::exception_ptr failure;
  };
  enum class Origin : std::uint8_t { kTransfer, kBlank, kAbandoned };
  enum class Cause : std::uint8_t { kFault, kHint };

  /// `writes_are_declared` as in ManagedOptions. The other arguments outlive this object.
  PageMoves(bool writes_are_declared, PageTable& table, PageMapper& mapper, PageTransfer& transfer)
      : writes_are_declared_{writes_are_declared},
        table_{table},
        mapper_{mapper},
        transfer_{transfer} {}

  /// Requires: the page is filling and owns `slot`.
  [[nodiscard]] Move start_filling(Lock& lock, PageIndex index, SlotIndex slot, Origin origin);
  /// Maps the page when its transfer has ended. If far memory failed, a page requested by a hint
  /// stays far. A faulting page is blank if a launch uses it, and check() reports this; otherwise
  /// the process ends.
  void finish_filling(Lock& lock, const Move& move, Cause cause);
  /// Counts a refused page, which stays where it is. Requires: the page is filling and has no slot.
  void refuse(PageIndex index);

  /// Unmaps the page under the lock, so that no use can begin and write to it unnoticed, then saves
  /// it if it is dirty. Requires: the page is resident and not in use.
  [[nodiscard]] Move start_leaving(Lock& lock, PageIndex index);
  /// Returns true when the page has left; the caller owns its slot, still charged. Returns false
  /// when the content could not be saved; the page is near again, as the most recently used.
  [[nodiscard]] bool finish_leaving(Lock& lock, const Move& move);
  /// Like finish_leaving(), but frees the slot. Counts a page that could not be saved.
  void finish_leaving_and_free(Lock& lock, const Move& move);

  /// Records a touch by a fault. Without a declared use it counts as a write, unless the page has
  /// content and kReadMostly.
  void note_touch(Page& page) const noexcept;

  [[nodiscard]] bool any_filling() const { return filling_ > 0; }
  [[nodiscard]] bool any_leaving() const { return leaving_ > 0; }
  [[nodiscard]] Counters& counters() { return counters_; }
  [[nodiscard]] const Counters& counters() const { return counters_; }
  /// Throws: the first failure of far memory, if any.
  void throw_failure() const;

 private:
  void note_arrival(const Move& move, Cause cause);
  void note_failure(const std::exception_ptr& failure);

  const bool writes_are_declared_;
  PageTable& table_;
  PageMapper& mapper_;
  PageTransfer& transfer_;

  Counters counters_;
  std::exception_ptr failure_;  // the first one
  std::uint64_t filling_ = 0;   // filling pages with a slot
  std::uint64_t leaving_ = 0;
};

}  // namespace spillway::um
