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

/// Moves content between slots and far memory over the link, each page at an offset of its own.
///
/// Thread safety: calls for different pages and slots may run at the same time, also in page-fault
/// handlers: they allocate nothing (unless far memory fails) and hold no lock.
class PageTransfer {
 public:
  /// One page on its way over the link.
  struct Result {
    Link::Clock::time_point end;  ///< when the link will have moved it
    std::exception_ptr failure;   ///< null when all is well
  };

  /// `mapper` outlives it.
  PageTransfer(const ManagedOptions& options, const PageMapper& mapper,
               std::unique_ptr<FarStore> far);

  [[nodiscard]] FarStore& far() const { return *far_; }

  /// Reads `page` from far memory into `slot`. When that fails the slot is blank.
  [[nodiscard]] Result read(PageIndex page, SlotIndex slot) noexcept;
  /// Writes `slot` to the far memory of `page`.
  [[nodiscard]] Result write(PageIndex page, SlotIndex slot) noexcept;
  /// Fills `slot` with zeros; when the space is poisoned, with NaNs.
  void blank(SlotIndex slot) const noexcept;
  /// Prepares `slot` for a page without content that is to be overwritten: it may keep what another
  /// page left in it. When the space is poisoned, as blank().
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

/// Fills pages and takes them away. Content moves outside the table's lock: functions that take the
/// lock release it meanwhile.
///
/// Thread safety: the table's lock is held in every call.
class PageMoves {
 public:
  using Lock = PageTable::Lock;

  /// A page on its way: filling or leaving.
  struct Move {
    PageIndex index;
    SlotIndex slot;
    bool is_transferred;  ///< over the link; else end means nothing
    Link::Clock::time_point end;
    std::exception_ptr failure;
  };
  enum class Origin : std::uint8_t { kTransfer, kBlank, kAbandoned };
  enum class Cause : std::uint8_t { kFault, kHint };

  /// `writes_are_declared` as in ManagedOptions. The others outlive it.
  PageMoves(bool writes_are_declared, PageTable& table, PageMapper& mapper, PageTransfer& transfer)
      : writes_are_declared_{writes_are_declared},
        table_{table},
        mapper_{mapper},
        transfer_{transfer} {}

  /// Requires: the page is filling and `slot` is its own.
  [[nodiscard]] Move start_filling(Lock& lock, PageIndex index, SlotIndex slot, Origin origin);
  /// Shows the page when the link has brought it. A page that far memory did not give stays far
  /// after a hint. After a fault it is blank in a launch, whose check() tells of it; outside one
  /// the process ends.
  void finish_filling(Lock& lock, const Move& move, Cause cause);
  /// Requires: the page is filling and has no slot. It stays where it is, which is counted.
  void refuse(PageIndex index);

  /// Requires: the page is resident and not in use. Unmaps it while the lock is held, so that no
  /// use can begin and write to it unseen; then saves it when it is dirty.
  [[nodiscard]] Move start_leaving(Lock& lock, PageIndex index);
  /// True: the page has left, and its slot is the caller's, still charged. False: its content could
  /// not be saved, and it is near again as the one used last.
  [[nodiscard]] bool finish_leaving(Lock& lock, const Move& move);
  /// As finish_leaving(), and frees the slot. Counts a page that could not be saved.
  void finish_leaving_and_free(Lock& lock, const Move& move);

  /// Notes a touch that came by a fault. It may be a write when no use is declared, unless the page
  /// is read mostly and has content.
  void note_touch(Page& page) const noexcept;

  [[nodiscard]] bool any_filling() const { return filling_ > 0; }
  [[nodiscard]] bool any_leaving() const { return leaving_ > 0; }
  [[nodiscard]] Counters& counters() { return counters_; }
  [[nodiscard]] const Counters& counters() const { return counters_; }
  /// Throws: the first failure of far memory there has been.
  void throw_failure() const;

 private:
  void note_arrival(const Move& move, Cause cause);
  void note_failure(const std::exception_ptr& failure);

  const bool writes_are_declared_;
  PageTable& table_;
  PageMapper& mapper_;
  PageTransfer& transfer_;

  Counters counters_;
  std::exception_ptr failure_;  // the first
  std::uint64_t filling_ = 0;   // pages filling that have a slot
  std::uint64_t leaving_ = 0;
};

}  // namespace spillway::um
