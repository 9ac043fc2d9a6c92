#include "um/arena.h"

#include <algorithm>

#include "um/error.h"

namespace spillway::um {

Arena::Arena(Bytes size, Bytes alignment)
    : size_{round_down(size, alignment)}, alignment_{alignment} {
  segments_.push_back({.offset = Bytes{}, .size = size_, .is_free = true});
  add_free(segments_.begin());
}

void Arena::add_free(Segments::iterator segment) {
  free_.emplace(std::pair{segment->size, segment->offset}, segment);
}

void Arena::remove_free(Segments::iterator segment) {
  free_.erase({segment->size, segment->offset});
}

std::optional<Bytes> Arena::allocate(Bytes size) { return allocate(size, alignment_); }

std::optional<Bytes> Arena::allocate(Bytes size, Bytes alignment) {
  expects(size > Bytes{}, "an arena allocation has a size");
  if (size > size_) return std::nullopt;
  const Bytes needed = round_up(size, alignment_);
  const auto gap = [&](const Segment& segment) {  // before the first aligned offset
    return round_up(segment.offset, std::max(alignment, alignment_)) - segment.offset;
  };
  const auto found = std::find_if(
      free_.lower_bound({needed, Bytes{}}), free_.end(),
      [&](const auto& entry) { return entry.second->size >= gap(*entry.second) + needed; });
  if (found == free_.end()) return std::nullopt;
  const Segments::iterator best = found->second;
  free_.erase(found);
  if (const Bytes before = gap(*best); before > Bytes{}) {
    add_free(segments_.insert(best, {.offset = best->offset, .size = before, .is_free = true}));
    best->offset += before;
    best->size -= before;
  }
  if (best->size > needed) {
    add_free(segments_.insert(
        std::next(best),
        {.offset = best->offset + needed, .size = best->size - needed, .is_free = true}));
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
  auto segment = found->second;
  allocated_.erase(found);
  segment->is_free = true;
  in_use_ -= segment->size;
  const auto next = std::next(segment);
  if (next != segments_.end() && next->is_free) {
    remove_free(next);
    segment->size += next->size;
    segments_.erase(next);
  }
  if (segment != segments_.begin() && std::prev(segment)->is_free) {
    const auto before = std::prev(segment);
    remove_free(before);
    before->size += segment->size;
    segments_.erase(segment);
    segment = before;
  }
  add_free(segment);
}

Arena::Segment Arena::largest_free() const {
  return free_.empty() ? Segment{} : *free_.rbegin()->second;
}

void Arena::compact(const std::function<void(const Slide&)>& slide) {
  const Segment largest = largest_free();
  free_.clear();
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
  if (end == size_) return;
  segments_.push_back({.offset = end, .size = size_ - end, .is_free = true});
  add_free(std::prev(segments_.end()));
}

}  // namespace spillway::um
