#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "prefetch/runtime/pinned_blocks.h"
#include "prefetch/runtime/step_layout.h"
#include "prefetch/runtime/step_memory.h"
#include "src/plan/arena_use.h"
#include "src/plan/memory_mode.h"
#include "um/counters.h"
#include "um/device.h"
#include "um/ledger.h"
#include "um/memory.h"
#include "um/options.h"
#include "um/space.h"

namespace spillway {

/// The near and far memory that the steps of a training share (they never run at the same time).
class StepSpace {
 public:
  /// For steps laid out as `layouts` say. `options` gives page, far memory, link and paging; its
  /// sizes are worked out here. Near memory is charged to `ledger`; `near_memory` is limited by the
  /// same ledger. Everything must outlive the space.
  /// Throws: um::Error when the device cannot make it; um::OutOfMemory.
  StepSpace(um::Device& device, MemoryMode mode, um::ManagedOptions options,
            const std::vector<const prefetch::StepLayout*>& layouts, um::Memory& near_memory,
            um::Ledger& ledger);

  /// The memory of the step laid out as `layout`, one of those given. `state` as for PinnedBlocks.
  [[nodiscard]] std::unique_ptr<prefetch::StepMemory> make_memory(
      const prefetch::StepLayout& layout, const prefetch::PinnedBlocks& pinned);

  /// How that memory uses its arena; nothing outside copy mode, or before make_memory().
  [[nodiscard]] std::optional<ArenaUse> arena_use(const prefetch::StepLayout& layout) const;

  /// The buffer for what is always near, shared by the steps.
  [[nodiscard]] um::Range pinned_buffer() const { return buffer_.bytes(); }
  [[nodiscard]] um::Counters counters() const;
  /// "unified memory (uffd_move, 2 MiB pages, far RAM)"
  [[nodiscard]] std::string description() const;

 private:
  MemoryMode mode_;
  um::Ledger& ledger_;
  um::Block buffer_;
  um::Block slab_;  // resident
  std::unique_ptr<um::ManagedSpace> managed_;
  std::unique_ptr<um::CopySpace> copy_;
  std::map<const prefetch::StepLayout*, ArenaUse> arena_uses_;
};

}  // namespace spillway
