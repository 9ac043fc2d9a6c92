#include "prefetch/runtime/copy_arena.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "um/error.h"

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

namespace {

using um::Bytes;

constexpr Bytes kAlignment{4096};  // alignment for far files with direct I/O

}  // namespace

CompactedArena::CompactedArena(const StepLayout& layout, Bytes size, CopySegments& segments,
                               um::Ledger& ledger)
    : layout_{layout}, segments_{segments}, ledger_{ledger}, arena_{size, kAlignment} {}

void CompactedArena::begin_state(DataId id) {
  um::expects(allocate(segments_.block(id), layout_.graph[id].size),
              "an arena with nothing but state that is near between steps");
}

bool CompactedArena::begin_run(Position position) {
  const RunLayout& run = layout_.runs[position];
  return std::ranges::all_of(
             run.begins,
             [&](DataId id) { return allocate(segments_.block(id), layout_.graph[id].size); }) &&
         (run.workspace == Bytes{} || allocate(segments_.workspace(), run.workspace));
}

CopyArena::Room CompactedArena::begin_prefetch(std::uint32_t index) {
  const DataId data = layout_.plan.prefetches[index].data;
  CopySegment& block = segments_.block(data);
  if (!allocate(block, layout_.graph[data].size)) return Room::kInPieces;
  if (!is_touched_by_a_run(block)) return Room::kFound;
  release(block);
  return Room::kTouched;
}

bool CompactedArena::allocate(CopySegment& segment, Bytes size) {
  if (segment.is_allocated) return true;
  size = um::round_up(size, kAlignment);
  ledger_.charge(size);  // first: it may throw
  const std::optional<Bytes> offset = arena_.allocate(size);
  if (!offset) {
    ledger_.release(size);
    return false;
  }
  segment = {.is_allocated = true, .offset = *offset, .size = size};
  return true;
}

void CompactedArena::release(CopySegment& segment) {
  arena_.free(segment.offset);
  ledger_.release(segment.size);
  segment = {};
}

void CompactedArena::retire(CopySegment& segment, Position run) {
  retired_.push_back({.run = run, .offset = segment.offset, .size = segment.size});
  release(segment);
}

void CompactedArena::end_run(Position run) {
  while (!retired_.empty() && retired_.front().run <= run) retired_.pop_front();
}

bool CompactedArena::is_touched_by_a_run(const CopySegment& segment) const {
  return std::ranges::any_of(retired_, [&](const Retired& retired) {
    return retired.offset < segment.offset + segment.size &&
           segment.offset < retired.offset + retired.size;
  });
}

void CompactedArena::compact(const std::function<void(const um::Arena::Slide&)>& slide) {
  std::unordered_map<std::uint64_t, CopySegment*> by_offset;
  for (CopySegment& segment : segments_.all()) {
    if (segment.is_allocated) by_offset.emplace(segment.offset.count(), &segment);
  }
  arena_.compact([&](const um::Arena::Slide& step) {
    slide(step);
    by_offset.at(step.from.count())->offset = step.to;
  });
}

}  // namespace spillway::prefetch
