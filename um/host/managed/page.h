#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "um/bytes.h"
#include "um/hints.h"

namespace spillway::um {

using PageIndex = std::uint32_t;  ///< index of a page of managed memory
using SlotIndex = std::uint32_t;  ///< index of a page of near memory

inline constexpr SlotIndex kNoSlot = std::numeric_limits<SlotIndex>::max();

/// Pages `begin` to `end - 1`.
struct PageSpan {
  PageIndex begin;
  PageIndex end;
};

enum class PageState : std::uint8_t {
  kNone,      ///< not near: a touch faults
  kFilling,   ///< a thread is bringing it near: a touch faults and waits
  kResident,  ///< near and mapped
  kLeaving,   ///< unmapped while a thread still saves its content
  kReleased,  ///< discarded, not near, but still mapped to a slot that may be taken
};

/// The place of a page's content when the page is not moving.
enum class Content : std::uint8_t {
  kNone,  ///< nowhere: never written, discarded, or populated and not written yet
  kNear,  ///< near only: dirty
  kFar,   ///< far; if resident, an identical copy is near
};

/// The state of one page.
struct Page {
  PageState state = PageState::kNone;
  Content content = Content::kNone;
  Advice advice = Advice::kNone;
  /// True if a writing use began and ended while the page was filling.
  bool was_written_while_filling = false;
  SlotIndex slot = kNoSlot;       ///< near memory of a resident, leaving or released page
  std::uint64_t stay = 0;         ///< identifies this period as resident among all pages
  std::uint32_t pins = 0;         ///< operands of launches in flight that hold it
  std::uint32_t writers = 0;      ///< those that write
  std::uint32_t overwriters = 0;  ///< those that overwrite every byte and read none

  /// Returns whether no thread is moving the page.
  [[nodiscard]] bool is_settled() const {
    return state != PageState::kFilling && state != PageState::kLeaving;
  }
};

/// Divides the addresses of a slab into pages.
class PageGrid {
 public:
  /// Requires: the slab starts and ends at page boundaries.
  PageGrid(Range slab, Bytes page) : slab_{slab}, page_{page.count()} {}

  [[nodiscard]] Range slab() const { return slab_; }

  /// Requires: `address` is in the slab.
  [[nodiscard]] PageIndex page_of(const std::byte* address) const {
    return static_cast<PageIndex>(offset_of(address) / page_);
  }

  /// Returns every page that `range` overlaps. Throws: ContractError when it leaves the slab.
  [[nodiscard]] PageSpan touched(Range range) const;
  /// Returns the pages that lie entirely in `range`.
  [[nodiscard]] PageSpan covered(Range range) const;
  /// Returns the number of bytes of `range` on a page. Requires: the range overlaps the page.
  [[nodiscard]] Bytes shared(Range range, PageIndex index) const;
  /// Throws: ContractError unless `range` consists of whole pages of the slab.
  [[nodiscard]] PageSpan whole(Range range) const;

 private:
  [[nodiscard]] std::size_t offset_of(const std::byte* address) const {
    return static_cast<std::size_t>(address - slab_.data());
  }

  Range slab_;
  std::size_t page_;
};

}  // namespace spillway::um
