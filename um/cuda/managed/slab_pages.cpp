#include "um/cuda/managed/slab_pages.h"

#include <algorithm>

#include "um/error.h"

namespace spillway::um {

SlabPages::SlabPages(Range slab, Bytes page, Ledger& ledger)
    : slab_{slab}, page_{page.count()}, ledger_{ledger}, pages_(slab.size() / page.count()) {
  expects(slab.size() % page_ == 0, "a slab of whole pages");
}

SlabPages::~SlabPages() { send_away(slab_); }

SlabPages::Span SlabPages::pages_of(Range range) const {
  expects(
      range.data() >= slab_.data() && range.data() + range.size() <= slab_.data() + slab_.size(),
      "a range of the slab");
  const auto offset = static_cast<std::size_t>(range.data() - slab_.data());
  expects(offset % page_ == 0 && range.size() % page_ == 0, "a range of whole pages");
  return {.begin = offset / page_, .end = (offset + range.size()) / page_};
}

template <class Pred>
std::vector<Range> SlabPages::ranges_where(Span span, const Pred& pred) const {
  std::vector<Range> ranges;
  for (std::size_t index = span.begin; index < span.end; ++index) {
    if (!pred(pages_[index])) continue;
    std::byte* const address = slab_.data() + index * page_;
    if (!ranges.empty() && ranges.back().data() + ranges.back().size() == address) {
      ranges.back() = {ranges.back().data(), ranges.back().size() + page_};
    } else {
      ranges.emplace_back(address, page_);
    }
  }
  return ranges;
}

std::vector<Range> SlabPages::bring(Range range) {
  const Span span = pages_of(range);
  std::uint64_t added = 0;
  for (std::size_t i = span.begin; i < span.end; ++i) added += pages_[i].state != State::kLive;
  ledger_.charge(Bytes{added * page_});
  std::vector<Range> away =
      ranges_where(span, [](const Page& page) { return page.state == State::kAway; });
  for (std::size_t i = span.begin; i < span.end; ++i) pages_[i].state = State::kLive;
  return away;
}

void SlabPages::retire(Range range) {
  const Span span = pages_of(range);
  for (std::size_t i = span.begin; i < span.end; ++i) {
    ++pages_[i].lives_due;
    if (pages_[i].state != State::kLive) continue;
    pages_[i].state = State::kRetired;
    ledger_.release(Bytes{page_});
  }
}

void SlabPages::end_life(Range range) {
  const Span span = pages_of(range);
  for (std::size_t i = span.begin; i < span.end; ++i) {
    Page& page = pages_[i];
    if (page.lives_due > 0) {
      --page.lives_due;
    } else if (page.state == State::kLive) {  // discarded without retire()
      page.state = State::kRetired;
      ledger_.release(Bytes{page_});
    }
  }
}

std::vector<Range> SlabPages::drop(Range range) {
  const Span span = pages_of(range);
  const auto is_over = [](const Page& page) {
    return page.state == State::kRetired && page.lives_due == 0;
  };
  std::vector<Range> dropped = ranges_where(span, is_over);
  for (std::size_t i = span.begin; i < span.end; ++i) {
    if (is_over(pages_[i])) pages_[i].state = State::kAway;
  }
  return dropped;
}

void SlabPages::send_away(Range range) {
  const Span span = pages_of(range);
  for (std::size_t i = span.begin; i < span.end; ++i) {
    if (pages_[i].state != State::kLive) continue;
    pages_[i].state = State::kAway;
    ledger_.release(Bytes{page_});
  }
}

Bytes SlabPages::live_bytes(Range range) const {
  if (range.empty()) return {};
  expects(
      range.data() >= slab_.data() && range.data() + range.size() <= slab_.data() + slab_.size(),
      "a range of the slab");
  const auto begin = static_cast<std::size_t>(range.data() - slab_.data());
  const std::size_t end = begin + range.size();
  Bytes live;
  for (std::size_t i = begin / page_; i * page_ < end; ++i) {
    if (pages_[i].state != State::kLive) continue;
    live += Bytes{std::min(end, (i + 1) * page_) - std::max(begin, i * page_)};
  }
  return live;
}

std::size_t SlabPages::away(Range range) const {
  const Span span = pages_of(range);
  return static_cast<std::size_t>(
      std::count_if(pages_.begin() + static_cast<std::ptrdiff_t>(span.begin),
                    pages_.begin() + static_cast<std::ptrdiff_t>(span.end),
                    [](const Page& page) { return page.state == State::kAway; }));
}

}  // namespace spillway::um
