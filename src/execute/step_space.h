#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "prefetch/runtime/step_layout.h"
#include "src/execute/movable_blocks.h"
#include "src/plan/plans.h"
#include "um/device.h"
#include "um/memory.h"
#include "um/options.h"

namespace spillway {

/// The near and far memory that the steps of a training share (they never run at the same time).
class StepSpace {
 public:
  /// For steps laid out as `layouts` say. `options` gives page, far memory, link and paging; its
  /// sizes are worked out here. Near memory is charged to `ledger`; `near_memory` is limited by the
  /// same ledger. Everything must outlive the space.
  /// Throws: um::Error when the device cannot make it; um::OutOfMemory.
  StepSpace(um::Device& device, MemoryMode mode, const um::ManagedOptions& options,
            const std::vector<const prefetch::StepLayout*>& layouts, um::Memory& near_memory,
            um::Ledger& ledger);

  /// The memory of the step laid out as `layout`, one of those given.
  [[nodiscard]] std::unique_ptr<prefetch::StepMemory> make_memory(
      const prefetch::StepLayout& layout, const prefetch::PinnedBlocks& pinned) {
    return movable_->make_memory(layout, pinned);
  }
  /// How that memory uses its arena; nothing outside copy mode, or before make_memory().
  [[nodiscard]] std::optional<ArenaUse> arena_use(const prefetch::StepLayout& layout) const {
    return movable_->arena_use(layout);
  }

  /// The buffer for what is always near, shared by the steps.
  [[nodiscard]] um::Range pinned_buffer() const { return buffer_.bytes(); }
  [[nodiscard]] um::Counters counters() const { return movable_->counters(); }
  [[nodiscard]] std::string description() const { return movable_->description(); }

 private:
  um::Block buffer_;
  std::unique_ptr<MovableBlocks> movable_;
};

}  // namespace spillway
