#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "prefetch/runtime/copy_arena.h"
#include "prefetch/runtime/copy_segments.h"
#include "prefetch/runtime/far_placement.h"
#include "prefetch/runtime/step_layout.h"
#include "prefetch/runtime/step_memory.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"
#include "um/hints.h"
#include "um/memory.h"

namespace spillway::prefetch {

/// Movable state in the copy mode between the steps of a plan: each block at its place in far
/// memory, or in the arena. In far memory its content is right whenever no step has written it
/// since it was brought, or the step renews its far copy.
///
/// Thread safety: one thread at a time, while no step is under way. Throws: what copies throw;
/// um::OutOfMemory.
class CopiedState {
 public:
  /// All but `layout`'s plan are the memory's own; all outlive it. `near` is the arena's memory.
  CopiedState(const StepLayout& layout, const FarPlacement& far, um::Range near, um::Copies& copies,
              CopySegments& segments, CopyArena& arena, um::Ledger& ledger);

  /// Brings what is near between steps into the arena, unless it is there.
  void bring_home();
  /// Sends it all to far memory.
  void send_far();
  /// A step is about to begin: brings all home. Afterwards it may be written.
  void begin_step();
  /// Calls `use` with the addresses of blocks: in the arena where all are near between steps. Else
  /// everything is sent far, and they are brought to the beginning of the arena alone.
  void use(std::span<const DataId> ids, um::Access access, const StepMemory::StateUse& use);

 private:
  struct NearBlock {
    DataId data;
    bool goes_stale;  // its far copy, in a step
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

}  // namespace spillway::prefetch
