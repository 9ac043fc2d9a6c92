#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "prefetch/placement/placed_step.h"
#include "prefetch/runtime/copied_state.h"
#include "prefetch/runtime/copy_arena.h"
#include "prefetch/runtime/copy_segments.h"
#include "prefetch/runtime/far_placement.h"
#include "prefetch/runtime/pinned_blocks.h"
#include "prefetch/runtime/placed_blocks.h"
#include "prefetch/runtime/plan_walker.h"
#include "prefetch/runtime/step_layout.h"
#include "prefetch/runtime/step_memory.h"
#include "um/hints.h"
#include "um/memory.h"

namespace spillway::prefetch {

/// Explicit swapping: blocks live in an arena of near memory and are copied to and from far memory
/// as the plan says. Each lies at a place fixed before the first step (FixedArena) where all near
/// intervals of the step fit so. Else the arena is compacted when it must be (CompactedArena). What
/// leaves is copied while runs may still read it; its room is free when they have ended. Movable
/// state waits between steps where the plan has it, near or far.
class CopyMemory final : public StepMemory {
 public:
  /// The plan moves whole blocks. `near` is the arena's memory; near bytes in use are charged to
  /// `ledger`. All must outlive this.
  CopyMemory(const StepLayout& layout, const PinnedBlocks& pinned, um::Range near,
             um::Copies& copies, um::Ledger& ledger);
  CopyMemory(const CopyMemory&) = delete;
  CopyMemory& operator=(const CopyMemory&) = delete;
  ~CopyMemory() override;

  [[nodiscard]] FixedPlaces* fixed_places() override { return places_.get(); }
  // A prefetch may have to wait until runs that may touch its room have ended.
  [[nodiscard]] bool needs_each_end() const override { return !placed_.fits; }
  void enter() override { state_.bring_home(); }
  void leave() override { state_.send_far(); }
  void with_state(std::span<const DataId> ids, um::Access access, const StateUse& use) override;
  void wait_for(const Progress& after) override { walker_.wait_for(after); }
  [[nodiscard]] um::FarSide* far_side() override { return copies_.far_side(); }
  [[nodiscard]] um::Bytes far_offset(DataId id) const override {
    return far_.offsets[static_cast<std::size_t>(id)];
  }
  void begin_step() override;
  void begin_run(Position position) override;
  [[nodiscard]] std::byte* address(DataId id) const override;
  [[nodiscard]] std::byte* workspace() const override;
  void after_launch(Position position) override;
  void end_run(Position position) override;
  void fail(std::exception_ptr error) override { walker_.fail(std::move(error)); }
  void end_step() override;
  [[nodiscard]] Timeline moves() const override { return walker_.moves(); }

  /// The near intervals of the step; each has a fixed place where they fit.
  [[nodiscard]] const PlacedStep& placed() const { return placed_; }
  /// How often the arena was compacted.
  [[nodiscard]] std::uint64_t compactions() const { return compactions_; }

 private:
  // A block that is far, but which runs until then may still read in near memory.
  struct ReadOn {
    std::uint32_t frees_after;
    CopySegment* block;
  };

  bool issue_offload(std::uint32_t index, um::Completion done);
  bool issue_prefetch(std::uint32_t index, um::Completion done);
  void begin_segments(Position position);
  void compact();
  void compact(std::unique_lock<std::mutex>& lock);
  [[nodiscard]] um::Range bytes(const CopySegment& segment) const {
    return near_.subspan(segment.offset.count(), segment.size.count());
  }

  const StepLayout& layout_;
  const PinnedBlocks& pinned_;
  um::Range near_;
  um::Copies& copies_;
  FarPlacement far_;
  PlacedStep placed_;
  std::unique_ptr<PlacedBlocks> places_;  // null where the arena is compacted, or far has none

  std::mutex mutex_;  // guards what follows
  std::condition_variable idle_;
  CopySegments segments_;
  const std::unique_ptr<CopyArena> arena_;
  CopiedState state_;  // used without the mutex: between steps nobody else is there
  std::vector<ReadOn> read_on_;
  std::uint32_t ended_ = 0;  // how many runs, in this step
  std::uint32_t copies_under_way_ = 0;
  bool is_paused_ = false;  // no copy may start: the arena is about to be compacted

  std::atomic<bool> wants_compaction_ = false;  // a prefetch found room, but not in one piece
  std::uint64_t compactions_ = 0;
  std::atomic<Position> launched_ = 0;  // how many runs, in this step
  Position position_ = 0;
  PlanWalker walker_;
};

}  // namespace spillway::prefetch
