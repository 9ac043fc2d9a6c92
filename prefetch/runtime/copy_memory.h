#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "prefetch/placement/placed_step.h"
#include "prefetch/runtime/copy_arena.h"
#include "prefetch/runtime/plan_walker.h"
#include "prefetch/runtime/step_layout.h"
#include "prefetch/runtime/step_memory.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"
#include "um/hints.h"
#include "um/memory.h"

namespace spillway::prefetch {

/// Movable state in the copy mode between the steps of a plan: each block at its place in far
/// memory or in the arena. The far copy is valid until a step writes the near one, unless the step
/// renews the far copy.
///
/// Thread safety: one thread at a time, while no step is in flight. Throws: what copies throw;
/// um::OutOfMemory.
class CopiedState {
 public:
  /// `near` is the arena's memory. All arguments must outlive this; all but `layout` belong to the
  /// CopyMemory.
  CopiedState(const StepLayout& layout, const FarPlacement& far, um::Range near, um::Copies& copies,
              CopySegments& segments, CopyArena& arena, um::Ledger& ledger);

  /// Copies the state that is near between steps into the arena, unless it is there.
  void bring_home();
  /// Copies all state to far memory.
  void send_far();
  /// Brings state home before a step, which may write it.
  void begin_step();
  /// Calls `use` with the addresses of blocks, in the arena if all are near between steps.
  /// Otherwise sends all state far, and brings only these blocks to the beginning of the arena.
  void use(std::span<const DataId> ids, um::Access access, const StepMemory::StateUse& use);

 private:
  struct NearBlock {
    DataId data;
    bool goes_stale;  // true if a step invalidates its far copy
  };

  void use_alone(std::span<const DataId> ids, um::Access access, const StepMemory::StateUse& use);
  void use_at(std::span<const DataId> ids, std::span<const um::Range> places, um::Access access,
              const StepMemory::StateUse& use);
  [[nodiscard]] um::Range bytes(const CopySegment& segment) const {
    return near_.subspan(segment.offset.count(), segment.size.count());
  }
  [[nodiscard]] um::Bytes far_offset(DataId id) const {
    return far_.offsets[static_cast<std::size_t>(id)];
  }

  const StepLayout& layout_;
  const FarPlacement& far_;
  um::Range near_;
  um::Copies& copies_;
  CopySegments& segments_;
  CopyArena& arena_;
  um::Ledger& ledger_;
  std::vector<NearBlock> near_blocks_;  // between steps
  bool is_home_ = false;
  bool has_had_steps_ = false;  // since it came home
};

/// Explicit swapping: copies blocks between an arena of near memory and far memory as the plan
/// says. Blocks lie at fixed places if all near intervals of the step fit that way (FixedArena);
/// otherwise the arena is compacted on demand (CompactedArena). Runs may still read a block while
/// it is offloaded; its room is free after they have ended. Between steps, movable state stays near
/// or far as planned.
class CopyMemory final : public StepMemory {
 public:
  /// `near` is the arena's memory; near bytes in use are charged to `ledger`. All arguments must
  /// outlive this. Requires: the plan moves whole blocks.
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

  /// Returns the near intervals of the step, with fixed places if they fit.
  [[nodiscard]] const PlacedStep& placed() const { return placed_; }
  /// Returns how often the arena was compacted.
  [[nodiscard]] std::uint64_t compactions() const { return compactions_; }

 private:
  // A block that is far, but that runs before `frees_after` may still read in near memory.
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
  std::unique_ptr<PlacedBlocks> places_;  // null if compacted, or far memory has no addresses

  std::mutex mutex_;  // guards the members below
  std::condition_variable idle_;
  CopySegments segments_;
  const std::unique_ptr<CopyArena> arena_;
  CopiedState state_;  // needs no mutex: only one thread uses it between steps
  std::vector<ReadOn> read_on_;
  std::uint32_t ended_ = 0;  // runs of this step
  std::uint32_t copies_under_way_ = 0;
  bool is_paused_ = false;  // no copy may start: the arena is about to be compacted

  std::atomic<bool> wants_compaction_ = false;  // a prefetch found room, but not in one piece
  std::uint64_t compactions_ = 0;
  std::atomic<Position> launched_ = 0;  // runs of this step
  Position position_ = 0;
  PlanWalker walker_;
};

}  // namespace spillway::prefetch
