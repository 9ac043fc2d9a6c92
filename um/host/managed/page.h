#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "um/bytes.h"
#include "um/hints.h"

namespace spillway::um {

using PageIndex = std::uint32_t;  ///< of a page of managed memory
using SlotIndex = std::uint32_t;  ///< of a page of near memory

inline constexpr SlotIndex kNoSlot = std::numeric_limits<SlotIndex>::max();

/// Pages `begin` to `end - 1`.
struct PageSpan {
  PageIndex begin;
  PageIndex end;
};

enum class PageState : std::uint8_t {
  kNone,      ///< not near: a touch faults
  kFilling,   ///< some thread is bringing it near: a touch faults and waits
  kResident,  ///< near and mapped
  kLeaving,   ///< unmapped, and some thread is still saving what it holds
  kReleased,  ///< not near, for it was discarded; still mapped to a slot that is free to be taken
};

/// Where the content of a page that is not on its way is.
enum class Content : std::uint8_t {
  kNone,  ///< nowhere: never written, discarded, or populated and not written yet
  kNear,  ///< only near: it is dirty
  kFar,   ///< far; when resident, near as well, the same
};

/// What is known about one page.
struct Page {
  PageState state = PageState::kNone;
  Content content = Content::kNone;
  Advice advice = Advice::kNone;
  /// A use that writes began and ended while the page was filling.
  bool was_written_while_filling = false;
  SlotIndex slot = kNoSlot;       ///< its near memory, while resident, leaving or released
  std::uint64_t stay = 0;         ///< while resident: no other stay near has the same number
  std::uint32_t pins = 0;         ///< operands of launches under way that hold it
  std::uint32_t writers = 0;      ///< those of them that write
  std::uint32_t overwriters = 0;  ///< those of them that write every byte and read none

  /// No thread is moving it.
  [[nodiscard]] bool is_settled() const {
    return state != PageState::kFilling && state != PageState::kLeaving;
  }
};

/// Divides the addresses of a slab into pages.
class PageGrid {
 public:
  /// Requires: the slab starts and ends on a page.
  PageGrid(Range slab, Bytes page) : slab_{slab}, page_{page.count()} {}

  [[nodiscard]] Range slab() const { return slab_; }

  /// Requires: `address` is in the slab.
  [[nodiscard]] PageIndex page_of(const std::byte* address) const {
    return static_cast<PageIndex>(offset_of(address) / page_);
  }

  /// Every page of which `range` has a byte. Throws: ContractError when it leaves the slab.
  [[nodiscard]] PageSpan touched(Range range) const;
  /// The pages that `range` covers from end to end.
  [[nodiscard]] PageSpan covered(Range range) const;
  /// How many bytes of `range` are on a page. Requires: the range touches it.
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
