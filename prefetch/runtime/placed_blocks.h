#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "prefetch/placement/placed_step.h"
#include "prefetch/runtime/step_layout.h"
#include "prefetch/runtime/step_memory.h"
#include "um/hints.h"
#include "um/memory.h"

namespace spillway::prefetch {

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
