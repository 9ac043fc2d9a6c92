#pragma once

#include <cstddef>

#include "um/bytes.h"
#include "um/host/managed/page.h"
#include "um/range.h"

namespace spillway::um {

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
