#pragma once

#include <cstddef>

#include "prefetch/runtime/pinned_blocks.h"
#include "prefetch/runtime/step_layout.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// Addresses of a step whose movable blocks lie at fixed places in one slab: the resident and
/// managed modes. All must outlive it.
class SlabAddress {
 public:
  /// Workspaces that fit in `workspaces` lie there, at its begin, and not in the slab.
  /// Requires: `slab` has at least `layout.placement.extent` bytes.
  SlabAddress(const StepLayout& layout, const PinnedBlocks& pinned, um::Range slab,
              um::Range workspaces = {});

  [[nodiscard]] std::byte* block(DataId id) const;
  /// The workspace of the run at `position`; null when it needs none.
  [[nodiscard]] std::byte* workspace(Position position) const;

  /// All pages of a movable block, or some of them.
  [[nodiscard]] um::Range pages(DataId id) const;
  [[nodiscard]] um::Range pages(const Move& move) const;
  /// The pages of all movable state, also of what this step lacks.
  [[nodiscard]] um::Range state() const { return slab_.first(layout_.state.extent.count()); }
  /// The pages of the slab that the workspace of the run at `position` takes; empty when none.
  [[nodiscard]] um::Range workspace_pages(Position position) const;

 private:
  const StepLayout& layout_;
  const PinnedBlocks& pinned_;
  um::Range slab_;
  um::Range workspaces_;
};

}  // namespace spillway::prefetch
