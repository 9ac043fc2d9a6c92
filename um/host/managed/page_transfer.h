#pragma once

#include <exception>
#include <memory>

#include "um/host/far/far_store.h"
#include "um/host/far/link.h"
#include "um/host/managed/page.h"
#include "um/host/managed/page_mapper.h"
#include "um/options.h"
#include "um/range.h"

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

}  // namespace spillway::um
