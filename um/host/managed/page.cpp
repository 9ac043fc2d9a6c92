#include "um/host/managed/page.h"

#include <algorithm>
#include <functional>

#include "um/error.h"

namespace spillway::um {

PageSpan PageGrid::touched(Range range) const {
  if (range.empty()) return {0, 0};
  const std::less_equal<> is_before;  // total order over all addresses
  expects(is_before(slab_.data(), range.data()) &&
              is_before(range.data() + range.size(), slab_.data() + slab_.size()),
          "a range of managed memory lies in its slab");
  const std::size_t begin = offset_of(range.data());
  const std::size_t end = begin + range.size();
  return {static_cast<PageIndex>(begin / page_), static_cast<PageIndex>((end + page_ - 1) / page_)};
}

PageSpan PageGrid::covered(Range range) const {
  if (range.empty()) return {0, 0};
  const std::size_t begin = offset_of(range.data());
  const auto first = static_cast<PageIndex>((begin + page_ - 1) / page_);
  const auto last = static_cast<PageIndex>((begin + range.size()) / page_);
  return {first, std::max(first, last)};
}

Bytes PageGrid::shared(Range range, PageIndex index) const {
  const std::size_t begin = offset_of(range.data());
  const std::size_t page = index * page_;
  return Bytes{std::min(begin + range.size(), page + page_) - std::max(begin, page)};
}

PageSpan PageGrid::whole(Range range) const {
  const PageSpan pages = touched(range);
  expects(range.empty() || (offset_of(range.data()) % page_ == 0 && range.size() % page_ == 0),
          "a hint on managed memory covers whole pages");
  return pages;
}

}  // namespace spillway::um
