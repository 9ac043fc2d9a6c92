#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "prefetch/liveness.h"
#include "prefetch/placement/placed_step.h"
#include "prefetch/runtime/step_layout.h"
#include "prefetch/runtime/step_memory.h"
#include "prefetch/task_graph.h"
#include "um/arena.h"
#include "um/bytes.h"
#include "um/hints.h"
#include "um/memory.h"

namespace spillway::prefetch {

/// The room of a block or of the workspace in the copy mode's arena, while allocated.
struct CopySegment {
  bool is_allocated = false;
  um::Bytes offset;
  um::Bytes size;
};

/// The segments of a step: one per block, and one for the workspace of the current run.
class CopySegments {
 public:
  explicit CopySegments(std::size_t blocks) : segments_(blocks + 1) {}

  [[nodiscard]] CopySegment& block(DataId id) {
    return segments_[static_cast<std::size_t>(id) + 1];
  }
  [[nodiscard]] const CopySegment& block(DataId id) const {
    return segments_[static_cast<std::size_t>(id) + 1];
  }
  [[nodiscard]] CopySegment& workspace() { return segments_.front(); }
  [[nodiscard]] const CopySegment& workspace() const { return segments_.front(); }
  [[nodiscard]] std::span<CopySegment> all() { return segments_; }

 private:
  std::vector<CopySegment> segments_;
};

/// Allocates segments in the near memory of the copy mode, and charges a ledger for them.
///
/// Thread safety: one thread at a time. Throws: um::OutOfMemory beyond the ledger's limit.
class CopyArena {
 public:
  /// The result of an allocation for a prefetch.
  enum class Room : std::uint8_t {
    kFound,
    kInPieces,  ///< no piece is large enough before compact()
    kTouched,   ///< runs in flight may still touch it
  };

  virtual ~CopyArena() = default;

  /// Allocates a block of state that is near between steps. Requires: no step is in flight.
  virtual void begin_state(DataId id) = 0;
  /// Allocates what begins with run `position`. If false, call compact() and repeat the call.
  [[nodiscard]] virtual bool begin_run(Position position) = 0;
  /// Allocates the block that prefetch `index` of the plan brings back.
  [[nodiscard]] virtual Room begin_prefetch(std::uint32_t index) = 0;
  /// Frees the segment of a block that has been offloaded, in a step or between steps.
  virtual void release(CopySegment& segment) = 0;
  /// Frees a segment that runs launched up to `run` may still touch; later runs may reuse it.
  virtual void retire(CopySegment& segment, Position run) = 0;
  /// Notes that runs up to `run` have ended: prefetches may reuse what they touched.
  virtual void end_run(Position run) = 0;
  /// Compacts the arena: all free bytes become one piece. Moves segments with `slide`.
  virtual void compact(const std::function<void(const um::Arena::Slide&)>& slide) = 0;
};

/// Keeps every near interval of the step at the place that place_step() computed. check_placement()
/// proves that the previous content of the place has left. All arguments must outlive it.
class FixedArena final : public CopyArena {
 public:
  /// Requires: `placed.fits`.
  FixedArena(const PlacedStep& placed, CopySegments& segments, um::Ledger& ledger)
      : placed_{placed}, segments_{segments}, ledger_{ledger} {}

  void begin_state(DataId id) override { occupy(placed_.between_steps(id)); }
  [[nodiscard]] bool begin_run(Position position) override;
  [[nodiscard]] Room begin_prefetch(std::uint32_t index) override;
  void release(CopySegment& segment) override;
  void retire(CopySegment& segment, Position /*run*/) override { release(segment); }
  void end_run(Position /*run*/) override {}
  void compact(const std::function<void(const um::Arena::Slide&)>& /*slide*/) override {}

 private:
  void occupy(std::size_t interval);

  const PlacedStep& placed_;
  CopySegments& segments_;
  um::Ledger& ledger_;
};

/// Allocates segments dynamically. Compacts the arena when enough bytes are free but no piece is
/// large enough (moDNN section IV, defragmentation). All arguments must outlive it.
///
/// Runs execute in order, so a later run may reuse a block's room once the block's last run is
/// launched. A prefetch may reuse the room only after that run has ended.
class CompactedArena final : public CopyArena {
 public:
  CompactedArena(const StepLayout& layout, um::Bytes size, CopySegments& segments,
                 um::Ledger& ledger);

  void begin_state(DataId id) override;
  [[nodiscard]] bool begin_run(Position position) override;
  [[nodiscard]] Room begin_prefetch(std::uint32_t index) override;
  void release(CopySegment& segment) override;
  void retire(CopySegment& segment, Position run) override;
  void end_run(Position run) override;
  void compact(const std::function<void(const um::Arena::Slide&)>& slide) override;

 private:
  /// Freed room that runs launched up to `run` may still touch.
  struct Retired {
    Position run;
    um::Bytes offset;
    um::Bytes size;
  };

  /// Returns true when `segment` has room, also if it was allocated before.
  [[nodiscard]] bool allocate(CopySegment& segment, um::Bytes size);
  [[nodiscard]] bool is_touched_by_a_run(const CopySegment& segment) const;

  const StepLayout& layout_;
  CopySegments& segments_;
  um::Ledger& ledger_;
  um::Arena arena_;
  std::deque<Retired> retired_;
};

/// The places of the copy mode if all near intervals of a step fit at fixed places, and far memory
/// has addresses. Charges the whole arena while a step runs, and counts the step's copies at its
/// end.
class PlacedBlocks final : public FixedPlaces {
 public:
  /// `bring_state` copies the state that is near between steps to its places before each step, and
  /// charges it. All arguments must outlive it. Requires: `placed.fits`, and `copies.far()` is not
  /// empty.
  PlacedBlocks(const StepLayout& layout, const PinnedBlocks& pinned, const PlacedStep& placed,
               const FarPlacement& far, um::Range near, um::Copies& copies, um::Ledger& ledger,
               std::function<void()> bring_state);

  [[nodiscard]] std::byte* address(Position position, DataId id) const override;
  [[nodiscard]] std::byte* workspace(Position position) const override;
  [[nodiscard]] Copy offload(std::uint32_t index) const override { return offloads_[index]; }
  [[nodiscard]] Copy prefetch(std::uint32_t index) const override { return prefetches_[index]; }
  void begin_step() override;
  void end_step() noexcept override;

 private:
  struct Run {
    std::vector<std::byte*> operands;  // as in its RunLayout
    std::byte* workspace = nullptr;
  };

  const StepLayout& layout_;
  const PinnedBlocks& pinned_;
  const PlacedStep& placed_;
  um::Copies& copies_;
  um::Ledger& ledger_;
  std::function<void()> bring_state_;
  um::Bytes size_;  // of the arena, without the state that is near between steps
  std::vector<Run> runs_;
  std::vector<Copy> offloads_;
  std::vector<Copy> prefetches_;
};

}  // namespace spillway::prefetch
