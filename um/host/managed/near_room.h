#pragma once

#include <exception>
#include <optional>
#include <string>

#include "um/host/managed/page.h"
#include "um/host/managed/page_mapper.h"
#include "um/host/managed/page_moves.h"
#include "um/host/managed/page_table.h"

namespace spillway::um {

/// Finds slots for pages that come near: free ones, else those of pages that it evicts.
///
/// Thread safety: the table's lock is held in every call, and released while content moves.
class NearRoom {
 public:
  /// What a search found: a slot; else why the next page cannot leave, or neither.
  struct Result {
    std::optional<SlotIndex> slot;
    std::exception_ptr failure;
  };

  /// The table and the moves outlive it.
  NearRoom(bool writes_are_declared, const PageGeometry& geometry, PageTable& table,
           PageMoves& moves);

  /// For a hint. Finds nothing when every near page is in use or filling.
  [[nodiscard]] Result find(PageTable::Lock& lock);
  /// For a fault. Waits for other launches, and ends the process when there is no room without
  /// them, or when content would be lost that nobody is told of.
  [[nodiscard]] SlotIndex find_or_end(PageTable::Lock& lock) noexcept;

 private:
  [[nodiscard]] Result evict(PageTable::Lock& lock, PageIndex victim);
  [[nodiscard]] std::optional<SlotIndex> evict_unsaved(PageTable::Lock& lock);

  const bool writes_are_declared_;
  const std::string too_small_;
  PageTable& table_;
  PageMoves& moves_;
};

}  // namespace spillway::um
