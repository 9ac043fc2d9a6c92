#pragma once

#include <cstdint>
#include <limits>

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

}  // namespace spillway::um
