#pragma once

#include <deque>

#include "prefetch/runtime/copy_arena.h"
#include "prefetch/runtime/step_layout.h"
#include "um/bytes.h"
#include "um/memory.h"

namespace spillway::prefetch {

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

}  // namespace spillway::prefetch
