#pragma once

#include "prefetch/placement/placed_step.h"
#include "prefetch/runtime/copy_arena.h"
#include "um/memory.h"

namespace spillway::prefetch {

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

}  // namespace spillway::prefetch
