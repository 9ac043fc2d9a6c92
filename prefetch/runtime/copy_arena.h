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
#include "prefetch/task_graph.h"
#include "um/arena.h"
#include "um/bytes.h"
#include "um/memory.h"

namespace spillway::prefetch {

/// Where a block or the workspace lies in the arena of the copy mode, while it does.
struct CopySegment {
  bool is_allocated = false;
  um::Bytes offset;
  um::Bytes size;
};

/// The segments of a step: one for each block, and one for the workspace of the current run.
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

/// Gives segments room in the near memory of the copy mode, and charges it to a ledger.
///
/// Thread safety: one thread at a time. Throws: um::OutOfMemory beyond the ledger's limit.
class CopyArena {
 public:
  /// What a prefetch found.
  enum class Room : std::uint8_t {
    kFound,
    kInPieces,  ///< no piece is large enough before compact()
    kTouched,   ///< runs under way may still touch it
  };

  virtual ~CopyArena() = default;

  /// Gives room to a block of state that is near between steps. No step is under way.
  virtual void begin_state(DataId id) = 0;
  /// Gives room to what begins with run `position`. False: compact(), then repeat the call.
  [[nodiscard]] virtual bool begin_run(Position position) = 0;
  /// Gives room to the block that prefetch `index` of the plan brings back.
  [[nodiscard]] virtual Room begin_prefetch(std::uint32_t index) = 0;
  /// Takes back the room of a block that has left, in a step or between steps.
  virtual void release(CopySegment& segment) = 0;
  /// Takes back room that runs launched up to `run` may still touch: later runs may have it.
  virtual void retire(CopySegment& segment, Position run) = 0;
  /// The runs up to `run` have ended: prefetches may have what they touched.
  virtual void end_run(Position run) = 0;
  /// Makes all free bytes one piece; `slide` moves what lies in the way.
  virtual void compact(const std::function<void(const um::Arena::Slide&)>& slide) = 0;
};

/// Every near interval of the step at the place that place_step() worked out for it. What was there
/// before has left: check_placement() proves that. All arguments outlive it.
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

/// Segments allocated as they come. The arena is compacted when no piece is large enough although
/// there is room (moDNN section IV, defragmentation). All arguments outlive it.
///
/// Runs execute in order, so a later run may have a block's room once its last run is launched. A
/// prefetch may have that room only when the run has ended.
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
  /// Room that was given back, and that runs launched up to `run` may still touch.
  struct Retired {
    Position run;
    um::Bytes offset;
    um::Bytes size;
  };

  /// True when `segment` has room, also when it had it before.
  [[nodiscard]] bool allocate(CopySegment& segment, um::Bytes size);
  [[nodiscard]] bool is_touched_by_a_run(const CopySegment& segment) const;

  const StepLayout& layout_;
  CopySegments& segments_;
  um::Ledger& ledger_;
  um::Arena arena_;
  std::deque<Retired> retired_;
};

/// Where everything is in a step of which each run and each move finds all it touches at the same
/// addresses every time: such a step can be given ahead, as a StepProgram.
///
/// Thread safety: none.
class FixedPlaces {
 public:
  /// What a move copies; nothing from nowhere when no bytes need to go.
  struct Copy {
    std::span<const std::byte> from;
    std::byte* to = nullptr;
  };

  virtual ~FixedPlaces() = default;

  /// The address of an operand of the run at `position`.
  [[nodiscard]] virtual std::byte* address(Position position, DataId id) const = 0;
  /// The workspace of that run; null when its algorithm needs none.
  [[nodiscard]] virtual std::byte* workspace(Position position) const = 0;
  [[nodiscard]] virtual Copy offload(std::uint32_t index) const = 0;
  [[nodiscard]] virtual Copy prefetch(std::uint32_t index) const = 0;

  /// A step is about to use these places. Blocks until state is where it begins.
  /// Throws: um::OutOfMemory; what moves throw.
  virtual void begin_step() = 0;
  /// It uses them no more.
  virtual void end_step() noexcept = 0;
};

}  // namespace spillway::prefetch
