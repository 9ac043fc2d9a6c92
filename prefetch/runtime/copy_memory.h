#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

#include "prefetch/placement/placed_step.h"
#include "prefetch/runtime/pinned_blocks.h"
#include "prefetch/runtime/plan_walker.h"
#include "prefetch/runtime/step_layout.h"
#include "prefetch/runtime/step_memory.h"
#include "um/arena.h"
#include "um/copies.h"
#include "um/ledger.h"

namespace spillway::prefetch {

/// Where the blocks that a plan offloads lie in far memory.
struct FarPlacement {
  explicit FarPlacement(const StepLayout& layout);
  std::vector<um::Bytes> offsets;  ///< by DataId; meaningless for blocks that stay near
  um::Bytes extent;
};

/// Explicit swapping: blocks live in an arena of near memory and are copied to and from far memory
/// as the plan says. Where all stays of the step fit in the arena at fixed places, worked out when
/// this is made (place_step), each lies at its own. Else they are allocated as they come, and when
/// no segment is large enough although there is room, the arena is compacted between two runs
/// (moDNN section IV, defragmentation).
///
/// Room of a block that dies goes to later runs as soon as its last run is launched, since runs
/// execute in order; to a prefetch only when that run has ended.
class CopyMemory final : public StepMemory {
 public:
  /// The plan moves whole blocks. `near` is the arena's memory; near bytes in use are charged to
  /// `ledger`. All must outlive this.
  CopyMemory(const StepLayout& layout, const PinnedBlocks& pinned, um::Range near,
             um::Copies& copies, um::Ledger& ledger);
  CopyMemory(const CopyMemory&) = delete;
  CopyMemory& operator=(const CopyMemory&) = delete;
  ~CopyMemory() override;

  void begin_step() override {
    launched_ = 0;
    walker_.begin_step();
  }
  void begin_run(Position position) override;
  [[nodiscard]] std::byte* address(DataId id) const override;
  [[nodiscard]] std::byte* workspace() const override;
  void after_launch(Position position) override;
  void end_run(Position position) override;
  void fail(std::exception_ptr error) override { walker_.fail(std::move(error)); }
  void end_step() override { walker_.end_step(); }
  [[nodiscard]] Timeline moves() const override { return walker_.moves(); }

  /// The stays of the step; each has a fixed place where they fit.
  [[nodiscard]] const PlacedStep& placed() const { return placed_; }
  /// How often the arena was compacted.
  [[nodiscard]] std::uint64_t compactions() const { return compactions_; }

 private:
  static constexpr std::size_t kWorkspace = 0;  // index into segments_; blocks follow

  struct Segment {
    bool is_allocated = false;
    um::Bytes offset;
    um::Bytes size;
  };

  // Room that has been given back, and that runs launched up to `run` may still touch.
  struct Retired {
    Position run;
    um::Bytes offset;
    um::Bytes size;
  };

  bool issue_offload(std::uint32_t move, um::Completion done);
  bool issue_prefetch(std::uint32_t move, um::Completion done);
  void begin_intervals(Position position);
  void occupy(std::size_t interval);                                  // requires the lock
  [[nodiscard]] bool try_make_room(std::uint32_t prefetch);           // requires the lock
  [[nodiscard]] bool try_allocate(Segment& segment, um::Bytes size);  // requires the lock
  void allocate(Segment& segment, um::Bytes size);
  void release(Segment& segment);                                        // requires the lock
  void retire(Segment& segment, Position run);                           // requires the lock
  [[nodiscard]] bool is_touched_by_a_run(const Segment& segment) const;  // requires the lock
  void compact();
  void compact(std::unique_lock<std::mutex>& lock);
  [[nodiscard]] Segment& segment(DataId id) { return segments_[static_cast<std::size_t>(id) + 1]; }
  [[nodiscard]] um::Bytes far_offset(DataId id) const {
    return far_.offsets[static_cast<std::size_t>(id)];
  }
  [[nodiscard]] um::Range bytes(const Segment& segment) const {
    return near_.subspan(segment.offset.count(), segment.size.count());
  }

  const StepLayout& layout_;
  const PinnedBlocks& pinned_;
  um::Range near_;
  um::Copies& copies_;
  um::Ledger& ledger_;
  FarPlacement far_;
  PlacedStep placed_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable idle_;
  um::Arena arena_;  // idle where places are fixed
  std::vector<Segment> segments_;
  std::deque<Retired> retired_;
  std::uint32_t copies_under_way_ = 0;
  bool is_paused_ = false;  // no copy may start: the arena is about to be compacted

  std::atomic<bool> wants_compaction_ = false;  // a prefetch found room, but not in one piece
  std::uint64_t compactions_ = 0;
  std::atomic<Position> launched_ = 0;  // how many runs, in this step
  Position position_ = 0;
  PlanWalker walker_;
};

}  // namespace spillway::prefetch
