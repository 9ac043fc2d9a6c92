#include "prefetch/planners/modnn/segment_list.h"

#include "um/error.h"

namespace spillway::prefetch {

using um::Bytes;

bool SegmentList::allocate(DataId block, Bytes size) {
  um::expects(!contains(block), "a block has one place");
  const std::optional<Bytes> offset = arena_.allocate(size);
  if (!offset) return false;
  occupied_.emplace(offset->count(), Segment{.offset = *offset, .size = size, .block = block});
  offsets_.emplace(key(block), *offset);
  return true;
}

void SegmentList::free(DataId block) {
  const auto found = offsets_.find(key(block));
  um::expects(found != offsets_.end(), "only a block that has a place can leave it");
  arena_.free(found->second);
  occupied_.erase(found->second.count());
  offsets_.erase(found);
}

std::vector<Segment> SegmentList::segments() const {
  std::vector<Segment> all;
  Bytes end;
  const auto add_free = [&](Bytes up_to) {
    if (end < up_to) all.push_back({.offset = end, .size = up_to - end, .block = std::nullopt});
  };
  for (const auto& [offset, segment] : occupied_) {
    add_free(segment.offset);
    all.push_back(segment);
    end = segment.offset + segment.size;
  }
  add_free(arena_.size());
  return all;
}

}  // namespace spillway::prefetch
