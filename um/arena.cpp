#include "um/arena.h"

#include <algorithm>

#include "um/error.h"

namespace spillway::um {

Arena::Arena(Bytes size, Bytes alignment)
    : size_{round_down(size, alignment)}, alignment_{alignment} {
  segments_.push_back({.offset = Bytes{}, .size = size_, .is_free = true});
}

std::optional<Bytes> Arena::allocate(Bytes size) { return allocate(size, alignment_); }

std::optional<Bytes> Arena::allocate(Bytes size, Bytes alignment) {
  expects(size > Bytes{}, "an arena allocation has a size");
  if (size > size_) return std::nullopt;
  const Bytes needed = round_up(size, alignment_);
  const auto gap = [&](const Segment& segment) {  // before the first aligned offset
    return round_up(segment.offset, std::max(alignment, alignment_)) - segment.offset;
  };
  auto best = segments_.end();
  for (auto it = segments_.begin(); it != segments_.end(); ++it) {
    if (it->is_free && it->size >= gap(*it) + needed &&
        (best == segments_.end() || it->size < best->size)) {
      best = it;
    }
  }
  if (best == segments_.end()) return std::nullopt;
  if (const Bytes before = gap(*best); before > Bytes{}) {
    segments_.insert(best, {.offset = best->offset, .size = before, .is_free = true});
    best->offset += before;
    best->size -= before;
  }
  if (best->size > needed) {
    segments_.insert(
        std::next(best),
        {.offset = best->offset + needed, .size = best->size - needed, .is_free = true});
    best->size = needed;
  }
  best->is_free = false;
  in_use_ += needed;
  allocated_.emplace(best->offset.count(), best);
  return best->offset;
}

void Arena::free(Bytes offset) {
  const auto found = allocated_.find(offset.count());
  expects(found != allocated_.end(), "only what an arena handed out can be freed");
  const auto segment = found->second;
  allocated_.erase(found);
  segment->is_free = true;
  in_use_ -= segment->size;
  join_with_next(segment);
  if (segment != segments_.begin()) join_with_next(std::prev(segment));
}

void Arena::join_with_next(Segments::iterator segment) {
  const auto next = std::next(segment);
  if (next == segments_.end() || !segment->is_free || !next->is_free) return;
  segment->size += next->size;
  segments_.erase(next);
}

Arena::Segment Arena::largest_free() const {
  Segment largest{};
  for (const Segment& segment : segments_) {
    if (segment.is_free && segment.size >= largest.size) largest = segment;
  }
  return largest;
}

void Arena::compact(const std::function<void(const Slide&)>& slide) {
  const Segment largest = largest_free();
  Bytes end;
  for (auto it = segments_.begin(); it != segments_.end();) {
    if (it->is_free) {
      it = segments_.erase(it);
      continue;
    }
    if (it->offset != end) {
      const bool is_above = largest.offset > it->offset;
      slide({.from = it->offset,
             .to = end,
             .size = it->size,
             .spare = is_above ? largest.offset : Bytes{},
             .spare_size = is_above ? largest.size : Bytes{}});
      allocated_.erase(it->offset.count());
      it->offset = end;
      allocated_.emplace(end.count(), it);
    }
    end += it->size;
    ++it;
  }
  if (end < size_) segments_.push_back({.offset = end, .size = size_ - end, .is_free = true});
}

}  // namespace spillway::um
