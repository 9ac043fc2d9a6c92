#pragma once

#include "um/hints.h"
#include "um/host/managed/page_grid.h"

namespace spillway::um {

/// What one operand of a launch does to one of the pages it touches.
struct PageAccess {
  bool writes;
  bool overwrites;  ///< every byte of the page, and reads none

  [[nodiscard]] static PageAccess of(const Use& use, const PageGrid& grid, PageIndex index) {
    if (use.access != Access::kWrite) {
      return {.writes = use.access == Access::kReadWrite, .overwrites = false};
    }
    const PageSpan whole = grid.covered(use.range);
    return {.writes = true, .overwrites = whole.begin <= index && index < whole.end};
  }
};

}  // namespace spillway::um
