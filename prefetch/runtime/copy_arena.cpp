#include "prefetch/runtime/copy_arena.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "um/bytes.h"
#include "um/error.h"

namespace spillway::prefetch {
namespace {

using um::Bytes;

constexpr Bytes kAlignment{4096};  // alignment for far files with direct I/O

// Finds the near interval in which a run finds a block.
class IntervalsOfBlocks {
 public:
  IntervalsOfBlocks(const StepLayout& layout, const PlacedStep& placed)
      : plan_{layout.plan}, placed_{placed}, of_block_(layout.graph.data.size()) {
    for (std::size_t i = 0; i < placed.intervals.size(); ++i) {
      const NearInterval& interval = placed.intervals[i];
      if (!interval.is_workspace) of_block_[static_cast<std::size_t>(interval.data)].push_back(i);
    }
  }

  // `prefetched`: the number of prefetches that are guaranteed to have ended when the run starts.
  [[nodiscard]] std::size_t at_run(DataId id, Position position, std::uint32_t prefetched) const {
    const auto& intervals = of_block_[static_cast<std::size_t>(id)];
    const auto found = std::ranges::find_if(intervals, [&](std::size_t i) {
      const NearInterval& each = placed_.intervals[i];
      const bool has_begun = each.is_prefetched ? each.first < prefetched : each.first <= position;
      if (each.spans_steps && !each.is_offloaded) return true;
      const bool has_ended = each.is_offloaded ? plan_.offloads[each.last].frees_after() <= position
                                               : each.last < position;
      return each.spans_steps ? has_begun || !has_ended : has_begun && !has_ended;
    });
    um::expects(found != intervals.end(), "an operand that is near");
    return *found;
  }

 private:
  const Plan& plan_;
  const PlacedStep& placed_;
  std::vector<std::vector<std::size_t>> of_block_;
};

}  // namespace

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

PlacedBlocks::PlacedBlocks(const StepLayout& layout, const PinnedBlocks& pinned,
                           const PlacedStep& placed, const FarPlacement& far, um::Range near,
                           um::Copies& copies, um::Ledger& ledger,
                           std::function<void()> bring_state)
    : layout_{layout},
      pinned_{pinned},
      placed_{placed},
      copies_{copies},
      ledger_{ledger},
      bring_state_{std::move(bring_state)},
      size_{placed.placement.extent - placed.size_between_steps()},
      runs_(layout.runs.size()),
      offloads_(layout.plan.offloads.size()),
      prefetches_(layout.plan.prefetches.size()) {
  const auto near_range = [&](std::size_t interval) {
    return near.subspan(placed.placement.offsets[interval].count(),
                        placed.intervals[interval].size.count());
  };
  const auto far_range = [&](DataId id, std::size_t size) {
    return copies.far().subspan(far.offsets[static_cast<std::size_t>(id)].count(), size);
  };
  const IntervalsOfBlocks intervals{layout, placed};
  std::uint32_t prefetched = 0;
  for (Position p = 0; p < runs_.size(); ++p) {
    prefetched = std::max(prefetched, layout.plan.runs[p].after.prefetches);
    for (const Operand& operand : layout.runs[p].operands) {
      runs_[p].operands.push_back(near_range(intervals.at_run(operand.data, p, prefetched)).data());
    }
    if (layout.runs[p].has_small_workspace) runs_[p].workspace = pinned.small_workspace();
  }
  for (std::size_t i = 0; i < placed.intervals.size(); ++i) {
    const NearInterval& interval = placed.intervals[i];
    const um::Range at = near_range(i);
    if (interval.is_workspace) runs_[interval.first].workspace = at.data();
    if (interval.is_offloaded && !layout.plan.offloads[interval.last].is_clean) {
      offloads_[interval.last] = {.from = at, .to = far_range(interval.data, at.size()).data()};
    }
    if (interval.is_prefetched) {
      prefetches_[interval.first] = {.from = far_range(interval.data, at.size()), .to = at.data()};
    }
  }
}

std::byte* PlacedBlocks::address(Position position, DataId id) const {
  if (!layout_.block_sizes.is_movable(id)) return pinned_.address(id);
  const std::vector<Operand>& operands = layout_.runs[position].operands;
  const auto found = std::ranges::find(operands, id, &Operand::data);
  return runs_[position].operands[static_cast<std::size_t>(found - operands.begin())];
}

std::byte* PlacedBlocks::workspace(Position position) const { return runs_[position].workspace; }

void PlacedBlocks::begin_step() {
  bring_state_();
  ledger_.charge(size_);
}

void PlacedBlocks::end_step() noexcept {
  ledger_.release(size_);
  const auto bytes = [](const std::vector<Copy>& copies) {
    um::Bytes sum;
    for (const Copy& copy : copies) sum += um::Bytes{copy.from.size()};
    return sum;
  };
  copies_.note_copied(bytes(offloads_), bytes(prefetches_));
}

}  // namespace spillway::prefetch
