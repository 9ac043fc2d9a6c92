#pragma once

#include <cstdint>
#include <exception>

#include "um/counters.h"
#include "um/host/managed/page.h"
#include "um/host/managed/page_mapper.h"
#include "um/host/managed/page_table.h"
#include "um/host/managed/page_transfer.h"

namespace spillway::um {

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
