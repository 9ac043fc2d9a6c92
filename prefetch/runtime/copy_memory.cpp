#include "prefetch/runtime/copy_memory.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <unordered_map>
#include <utility>

#include "um/error.h"

namespace spillway::prefetch {
namespace {

using um::Bytes;

constexpr Bytes kAlignment{4096};  // what a far file with direct I/O asks for

// A copy that cannot even start has ended.
template <class Start>
void end_if_it_throws(const um::Completion& end, const Start& start) {
  try {
    start();
  } catch (...) {
    end(std::current_exception());
  }
}

}  // namespace

FarPlacement::FarPlacement(const StepLayout& layout) : offsets(layout.graph.data.size()) {
  std::vector<bool> has_place(offsets.size(), false);
  for (const Move& move : layout.plan.offloads) {
    const auto data = static_cast<std::size_t>(move.data);
    if (has_place[data]) continue;
    has_place[data] = true;
    offsets[data] = extent;
    extent += layout.block_sizes.size(move.data);
  }
}

CopyMemory::CopyMemory(const StepLayout& layout, const PinnedBlocks& pinned, um::Range near,
                       um::Copies& copies, um::Ledger& ledger)
    : layout_{layout},
      pinned_{pinned},
      near_{near},
      copies_{copies},
      ledger_{ledger},
      far_{layout},
      placed_{place_step(layout.graph, layout.plan, Bytes{near.size()})},
      arena_{Bytes{near.size()}, kAlignment},
      segments_(layout.graph.data.size() + 1),
      walker_{layout.plan,
              [this](std::uint32_t move, um::Completion done) {
                return issue_offload(move, std::move(done));
              },
              [this](std::uint32_t move, um::Completion done) {
                return issue_prefetch(move, std::move(done));
              }} {}

CopyMemory::~CopyMemory() {
  const std::lock_guard lock{mutex_};
  is_paused_ = true;
}

void CopyMemory::begin_run(Position position) {
  position_ = position;
  const RunLayout& run = layout_.runs[position];
  const Progress& after = layout_.plan.runs[position].after;
  if (placed_.fits) {
    walker_.wait_for_moves(after);
    begin_intervals(position);
    return;
  }
  if (wants_compaction_) compact();
  while (!walker_.wait_for_moves(after, [this] { return wants_compaction_.load(); })) compact();
  for (const DataId id : run.begins) allocate(segment(id), layout_.graph[id].size);
  if (run.workspace > Bytes{}) allocate(segments_[kWorkspace], run.workspace);
}

void CopyMemory::after_launch(Position position) {
  const std::lock_guard lock{mutex_};
  const RunLayout& run = layout_.runs[position];
  for (const DataId id : run.ends) retire(segment(id), position);
  if (run.workspace > Bytes{}) retire(segments_[kWorkspace], position);
  launched_ = position + 1;
}

void CopyMemory::end_run(Position position) {
  if (launched_ == position) after_launch(position);
  {
    const std::lock_guard lock{mutex_};
    while (!retired_.empty() && retired_.front().run <= position) retired_.pop_front();
  }
  walker_.end_run();
}

std::byte* CopyMemory::address(DataId id) const {
  if (!layout_.block_sizes.is_movable(id)) return pinned_.address(id);
  return bytes(segments_[static_cast<std::size_t>(id) + 1]).data();
}

std::byte* CopyMemory::workspace() const {
  const RunLayout& run = layout_.runs[position_];
  if (run.has_small_workspace) return pinned_.small_workspace();
  return run.workspace == Bytes{} ? nullptr : bytes(segments_[kWorkspace]).data();
}

bool CopyMemory::issue_offload(std::uint32_t index, um::Completion done) {
  const Move& move = layout_.plan.offloads[index];
  Segment& block = segment(move.data);
  const um::Completion end = [this, &block, done = std::move(done)](std::exception_ptr error) {
    {
      const std::lock_guard lock{mutex_};
      release(block);
      --copies_under_way_;
      idle_.notify_all();
    }
    done(std::move(error));
  };
  um::Range near;
  {
    const std::lock_guard lock{mutex_};
    if (is_paused_) return false;
    near = bytes(block);
    ++copies_under_way_;
  }
  if (move.is_clean) {
    end(nullptr);
  } else {
    end_if_it_throws(end, [&] { copies_.offload(near, far_offset(move.data), end); });
  }
  return true;
}

bool CopyMemory::issue_prefetch(std::uint32_t index, um::Completion done) {
  const Move& move = layout_.plan.prefetches[index];
  Segment& block = segment(move.data);
  const um::Completion end = [this, done = std::move(done)](std::exception_ptr error) {
    {
      const std::lock_guard lock{mutex_};
      --copies_under_way_;
      idle_.notify_all();
    }
    done(std::move(error));
  };
  um::Range near;
  {
    const std::lock_guard lock{mutex_};
    if (is_paused_) return false;
    if (!try_make_room(index)) return false;
    near = bytes(block);
    ++copies_under_way_;
  }
  end_if_it_throws(end, [&] { copies_.prefetch(far_offset(move.data), near, end); });
  return true;
}

void CopyMemory::begin_intervals(Position position) {
  const std::lock_guard lock{mutex_};
  const PlacedStep::Range intervals = placed_.begun_by_run(position);
  for (std::size_t interval = intervals.begin; interval < intervals.end; ++interval)
    occupy(interval);
}

// What was there before has left: that is what check_placement() proves.
void CopyMemory::occupy(std::size_t index) {
  const NearInterval& interval = placed_.intervals[index];
  ledger_.charge(interval.size);  // first: it may throw
  Segment& taken = interval.is_workspace ? segments_[kWorkspace] : segment(interval.data);
  taken = {.is_allocated = true, .offset = placed_.placement.offsets[index], .size = interval.size};
}

bool CopyMemory::try_make_room(std::uint32_t prefetch) {
  if (placed_.fits) {
    occupy(placed_.begun_by_prefetch(prefetch));
    return true;
  }
  const DataId data = layout_.plan.prefetches[prefetch].data;
  Segment& block = segment(data);
  wants_compaction_ = !try_allocate(block, layout_.graph[data].size);
  if (wants_compaction_) return false;
  if (is_touched_by_a_run(block)) {  // later runs may overwrite it, a copy may not: try again
    release(block);
    return false;
  }
  return true;
}

bool CopyMemory::try_allocate(Segment& segment, Bytes size) {
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

void CopyMemory::allocate(Segment& segment, Bytes size) {
  {
    std::unique_lock lock{mutex_};
    if (try_allocate(segment, size)) return;
    // No prefetch may come in between and cut the one free piece.
    compact(lock);
    um::expects(try_allocate(segment, size), "a verified plan leaves room for every run");
  }
  walker_.nudge();
}

void CopyMemory::release(Segment& segment) {
  if (!placed_.fits) arena_.free(segment.offset);
  ledger_.release(segment.size);
  segment = {};
}

void CopyMemory::retire(Segment& segment, Position run) {
  retired_.push_back({.run = run, .offset = segment.offset, .size = segment.size});
  release(segment);
}

bool CopyMemory::is_touched_by_a_run(const Segment& segment) const {
  return std::ranges::any_of(retired_, [&](const Retired& retired) {
    return retired.offset < segment.offset + segment.size &&
           segment.offset < retired.offset + retired.size;
  });
}

void CopyMemory::compact() {
  {
    std::unique_lock lock{mutex_};
    compact(lock);
  }
  walker_.nudge();
}

// Waits for the runs and copies under way, since their segments may not change place; the moves
// that this keeps from starting need a nudge afterwards.
void CopyMemory::compact(std::unique_lock<std::mutex>& lock) {
  is_paused_ = true;
  lock.unlock();
  walker_.wait_for({.runs = position_});
  lock.lock();
  idle_.wait(lock, [this] { return copies_under_way_ == 0; });
  std::unordered_map<std::uint64_t, Segment*> by_offset;
  for (Segment& segment : segments_) {
    if (segment.is_allocated) by_offset.emplace(segment.offset.count(), &segment);
  }
  const auto range = [this](Bytes offset, Bytes size) {
    return near_.subspan(offset.count(), size.count());
  };
  arena_.compact([&](const um::Arena::Slide& slide) {
    copies_.slide(range(slide.from, slide.size), near_.data() + slide.to.count(),
                  range(slide.spare, slide.spare_size));
    by_offset.at(slide.from.count())->offset = slide.to;
  });
  ++compactions_;
  is_paused_ = false;
  wants_compaction_ = false;
}

}  // namespace spillway::prefetch
