#include "um/dropin/allocations.h"

#include <algorithm>
#include <iterator>

#include "um/error.h"

namespace spillway::um {

Allocations::Allocations(Bytes slab, Bytes page)
    : page_{page}, arena_{slab, kUnit}, on_page_(slab / page) {}

std::optional<Bytes> Allocations::allocate(Bytes size, Bytes alignment) {
  const Bytes aligned = size >= page_ ? std::max(alignment, page_) : alignment;
  const auto offset = arena_.allocate(size, aligned);
  if (!offset) return std::nullopt;
  entries_.emplace(offset->count(), Entry{.size = size, .is_live = true});
  const Bytes end = round_up(*offset + size, page_);
  for (auto page = *offset / page_; page < end / page_; ++page) ++on_page_[page];
  return offset;
}

bool Allocations::starts_at(Bytes offset) const {
  const auto found = entries_.find(offset.count());
  return found != entries_.end() && found->second.is_live;
}

void Allocations::end(Bytes offset) {
  expects(starts_at(offset), "only a live allocation ends");
  entries_.find(offset.count())->second.is_live = false;
}

std::vector<Allocations::Span> Allocations::free(Bytes offset) {
  const auto found = entries_.find(offset.count());
  expects(found != entries_.end(), "only what was allocated is freed");
  const Bytes end = round_up(offset + found->second.size, page_);
  entries_.erase(found);
  arena_.free(offset);
  std::vector<Span> empty;
  for (auto page = offset / page_; page < end / page_; ++page) {
    if (--on_page_[page] > 0) continue;
    if (!empty.empty() && empty.back().offset + empty.back().size == page * page_) {
      empty.back().size += page_;
    } else {
      empty.push_back({.offset = page * page_, .size = page_});
    }
  }
  return empty;
}

std::optional<Allocations::Span> Allocations::around(Bytes offset) const {
  const auto after = entries_.upper_bound(offset.count());
  if (after == entries_.begin()) return std::nullopt;
  const auto& [begin, entry] = *std::prev(after);
  if (!entry.is_live || offset.count() - begin >= entry.size.count()) return std::nullopt;
  return Span{.offset = Bytes{begin}, .size = entry.size};
}

void MovesUnderWay::start(MemoryTier to) {
  const std::lock_guard lock{mutex_};
  ++of(to).started;
}

void MovesUnderWay::start_below(std::uint64_t max, MemoryTier to) {
  std::unique_lock lock{mutex_};
  changed_.wait(lock, [&] { return of(to).started < of(to).ended + max; });
  ++of(to).started;
}

void MovesUnderWay::end(MemoryTier to) noexcept {
  const std::lock_guard lock{mutex_};
  ++of(to).ended;
  changed_.notify_all();
}

void MovesUnderWay::wait() {
  std::unique_lock lock{mutex_};
  for (const Count& count : counts_) {
    const std::uint64_t so_far = count.started;
    changed_.wait(lock, [&] { return count.ended >= so_far; });
  }
}

}  // namespace spillway::um
