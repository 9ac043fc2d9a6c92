#include "prefetch/runtime/fixed_arena.h"

namespace spillway::prefetch {

bool FixedArena::begin_run(Position position) {
  const PlacedStep::Range intervals = placed_.begun_by_run(position);
  for (std::size_t i = intervals.begin; i < intervals.end; ++i) {
    if (!placed_.intervals[i].spans_steps) occupy(i);
  }
  return true;
}

CopyArena::Room FixedArena::begin_prefetch(std::uint32_t index) {
  occupy(placed_.begun_by_prefetch(index));
  return Room::kFound;
}

void FixedArena::release(CopySegment& segment) {
  ledger_.release(segment.size);
  segment = {};
}

void FixedArena::occupy(std::size_t index) {
  const NearInterval& interval = placed_.intervals[index];
  ledger_.charge(interval.size);  // first: it may throw
  CopySegment& taken =
      interval.is_workspace ? segments_.workspace() : segments_.block(interval.data);
  taken = {.is_allocated = true, .offset = placed_.placement.offsets[index], .size = interval.size};
}

}  // namespace spillway::prefetch
