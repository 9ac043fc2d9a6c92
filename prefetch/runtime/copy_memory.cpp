#include "prefetch/runtime/copy_memory.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "prefetch/block_sizes.h"
#include "prefetch/runtime/copy_arena.h"
#include "prefetch/runtime/step_memory.h"
#include "um/error.h"

namespace spillway::prefetch {
namespace {

using um::Bytes;

// Charges a ledger from construction to destruction.
class Charge {
 public:
  Charge(um::Ledger& ledger, Bytes size) : ledger_{ledger}, size_{size} { ledger_.charge(size_); }
  Charge(const Charge&) = delete;
  Charge& operator=(const Charge&) = delete;
  ~Charge() { ledger_.release(size_); }

 private:
  um::Ledger& ledger_;
  Bytes size_;
};

// Calls `end` with the exception if a copy cannot even start.
template <class Start>
void end_if_it_throws(const um::Completion& end, const Start& start) {
  try {
    start();
  } catch (...) {
    end(std::current_exception());
  }
}

std::unique_ptr<CopyArena> make_arena(const StepLayout& layout, const PlacedStep& placed,
                                      Bytes size, CopySegments& segments, um::Ledger& ledger) {
  if (placed.fits) return std::make_unique<FixedArena>(placed, segments, ledger);
  return std::make_unique<CompactedArena>(layout, size, segments, ledger);
}

}  // namespace

CopiedState::CopiedState(const StepLayout& layout, const FarPlacement& far, um::Range near,
                         um::Copies& copies, CopySegments& segments, CopyArena& arena,
                         um::Ledger& ledger)
    : layout_{layout},
      far_{far},
      near_{near},
      copies_{copies},
      segments_{segments},
      arena_{arena},
      ledger_{ledger} {
  std::vector<bool> written(layout.graph.data.size(), false);  // by the step
  for (const RunLayout& run : layout.runs) {
    for (const Operand& operand : run.operands) {
      if (operand.access != um::Access::kRead)
        written[static_cast<std::size_t>(operand.data)] = true;
    }
  }
  for (const DataId id : layout.used_state()) {
    if (layout.home.far_pages(id).front()) continue;
    const bool is_renewed = layout.home.copied_pages(id).front();
    near_blocks_.push_back(
        {.data = id, .goes_stale = written[static_cast<std::size_t>(id)] && !is_renewed});
  }
}

void CopiedState::bring_home() {
  if (is_home_) return;
  AwaitedMoves moves;
  for (const NearBlock& block : near_blocks_) {
    arena_.begin_state(block.data);
    copies_.prefetch(far_offset(block.data), bytes(segments_.block(block.data)), moves.one_more());
  }
  moves.wait();
  is_home_ = true;
  has_had_steps_ = false;
}

void CopiedState::send_far() {
  if (!is_home_) return;
  AwaitedMoves moves;
  for (const NearBlock& block : near_blocks_) {
    if (!block.goes_stale || !has_had_steps_) continue;
    copies_.offload(bytes(segments_.block(block.data)), far_offset(block.data), moves.one_more());
  }
  moves.wait();
  for (const NearBlock& block : near_blocks_) arena_.release(segments_.block(block.data));
  is_home_ = false;
}

void CopiedState::begin_step() {
  bring_home();
  has_had_steps_ = true;
}

void CopiedState::use(std::span<const DataId> ids, um::Access access,
                      const StepMemory::StateUse& use) {
  std::vector<um::Range> places;
  for (const DataId id : ids) {
    if (!is_home_ || std::ranges::find(near_blocks_, id, &NearBlock::data) == near_blocks_.end()) {
      return use_alone(ids, access, use);
    }
    places.push_back(bytes(segments_.block(id)));
  }
  use_at(ids, places, access, use);
}

void CopiedState::use_alone(std::span<const DataId> ids, um::Access access,
                            const StepMemory::StateUse& use) {
  send_far();
  std::vector<um::Range> places;
  Bytes end;
  for (const DataId id : ids) {
    const Bytes size = um::round_up(layout_.graph[id].size, kSmallestPage);
    um::expects((end + size).count() <= near_.size(), "blocks that the arena holds");
    places.push_back(near_.subspan(end.count(), size.count()));
    end += size;
  }
  const Charge charge{ledger_, end};
  if (access != um::Access::kWrite) {
    AwaitedMoves moves;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      copies_.prefetch(far_offset(ids[i]), places[i], moves.one_more());
    }
    moves.wait();
  }
  use_at(ids, places, access, use);
}

// Copies written blocks back to far memory.
void CopiedState::use_at(std::span<const DataId> ids, std::span<const um::Range> places,
                         um::Access access, const StepMemory::StateUse& use) {
  std::vector<std::byte*> addresses;
  for (const um::Range place : places) addresses.push_back(place.data());
  use(addresses);
  if (access == um::Access::kRead) return;
  AwaitedMoves moves;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    copies_.offload(places[i], far_offset(ids[i]), moves.one_more());
  }
  moves.wait();
}

CopyMemory::CopyMemory(const StepLayout& layout, const PinnedBlocks& pinned, um::Range near,
                       um::Copies& copies, um::Ledger& ledger)
    : layout_{layout},
      pinned_{pinned},
      near_{near},
      copies_{copies},
      far_{layout},
      placed_{place_step(layout.graph, layout.plan, Bytes{near.size()})},
      places_{placed_.fits && !copies.far().empty()
                  ? std::make_unique<PlacedBlocks>(layout, pinned, placed_, far_, near, copies,
                                                   ledger, [this] { state_.begin_step(); })
                  : nullptr},
      segments_{layout.graph.data.size()},
      arena_{make_arena(layout, placed_, Bytes{near.size()}, segments_, ledger)},
      state_{layout, far_, near, copies, segments_, *arena_, ledger},
      walker_{layout.plan,
              [this](std::uint32_t move, um::Completion done) {
                return issue_offload(move, std::move(done));
              },
              [this](std::uint32_t move, um::Completion done) {
                return issue_prefetch(move, std::move(done));
              },
              /*copies_while_read=*/true} {
  const std::lock_guard lock{mutex_};
  read_on_.reserve(layout.plan.offloads.size());  // a completion must not throw
}

CopyMemory::~CopyMemory() {
  const std::lock_guard lock{mutex_};
  is_paused_ = true;
}

void CopyMemory::with_state(std::span<const DataId> ids, um::Access access, const StateUse& use) {
  state_.use(ids, access, use);
}

void CopyMemory::begin_step() {
  state_.begin_step();
  launched_ = 0;
  ended_ = 0;
  walker_.begin_step();
}

// Prefetches of state may still run after the last run.
void CopyMemory::end_step() {
  position_ = static_cast<Position>(layout_.plan.runs.size());
  if (wants_compaction_) compact();
  while (!walker_.end_step([this] { return wants_compaction_.load(); })) compact();
}

void CopyMemory::begin_run(Position position) {
  position_ = position;
  const Progress& after = layout_.plan.runs[position].after;
  if (wants_compaction_) compact();
  while (!walker_.wait_for_moves(after, [this] { return wants_compaction_.load(); })) compact();
  begin_segments(position);
}

void CopyMemory::after_launch(Position position) {
  const std::lock_guard lock{mutex_};
  const RunLayout& run = layout_.runs[position];
  for (const DataId id : run.ends) arena_->retire(segments_.block(id), position);
  if (run.workspace > Bytes{}) arena_->retire(segments_.workspace(), position);
  launched_ = position + 1;
}

void CopyMemory::end_run(Position position) {
  if (launched_ == position) after_launch(position);
  {
    const std::lock_guard lock{mutex_};
    arena_->end_run(position);
    ended_ = position + 1;
    std::erase_if(read_on_, [this](const ReadOn& left) {
      if (left.frees_after > ended_) return false;
      arena_->release(*left.block);
      return true;
    });
  }
  walker_.end_run();
}

std::byte* CopyMemory::address(DataId id) const {
  if (!layout_.block_sizes.is_movable(id)) return pinned_.address(id);
  return bytes(segments_.block(id)).data();
}

std::byte* CopyMemory::workspace() const {
  const RunLayout& run = layout_.runs[position_];
  if (run.has_small_workspace) return pinned_.small_workspace();
  return run.workspace == Bytes{} ? nullptr : bytes(segments_.workspace()).data();
}

bool CopyMemory::issue_offload(std::uint32_t index, um::Completion done) {
  const Move& move = layout_.plan.offloads[index];
  CopySegment& block = segments_.block(move.data);
  const um::Completion end = [this, &block, frees_after = move.frees_after(),
                              done = std::move(done)](std::exception_ptr error) {
    {
      const std::lock_guard lock{mutex_};
      if (ended_ < frees_after) {
        read_on_.push_back({.frees_after = frees_after, .block = &block});
      } else {
        arena_->release(block);
      }
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
    const CopyArena::Room room = arena_->begin_prefetch(index);
    wants_compaction_ = room == CopyArena::Room::kInPieces;
    if (room != CopyArena::Room::kFound) return false;  // the walker tries again
    near = bytes(segments_.block(move.data));
    ++copies_under_way_;
  }
  end_if_it_throws(end, [&] { copies_.prefetch(far_offset(move.data), near, end); });
  return true;
}

void CopyMemory::begin_segments(Position position) {
  {
    std::unique_lock lock{mutex_};
    if (arena_->begin_run(position)) return;
    compact(lock);  // prevents a prefetch from splitting the one free piece
    um::expects(arena_->begin_run(position), "a verified plan leaves room for every run");
  }
  walker_.nudge();
}

void CopyMemory::compact() {
  {
    std::unique_lock lock{mutex_};
    compact(lock);
  }
  walker_.nudge();
}

// Waits for runs and copies in flight, since their segments must not move. Meanwhile no move
// starts; nudge the walker afterwards.
void CopyMemory::compact(std::unique_lock<std::mutex>& lock) {
  is_paused_ = true;
  lock.unlock();
  walker_.wait_for({.runs = position_});
  lock.lock();
  idle_.wait(lock, [this] { return copies_under_way_ == 0; });
  const auto range = [this](Bytes offset, Bytes size) {
    return near_.subspan(offset.count(), size.count());
  };
  arena_->compact([&](const um::Arena::Slide& slide) {
    copies_.slide(range(slide.from, slide.size), near_.data() + slide.to.count(),
                  range(slide.spare, slide.spare_size));
  });
  ++compactions_;
  is_paused_ = false;
  wants_compaction_ = false;
}

}  // namespace spillway::prefetch
