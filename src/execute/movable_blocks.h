#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "prefetch/runtime/step_layout.h"
#include "prefetch/runtime/step_memory.h"
#include "src/plan/arena_use.h"
#include "src/plan/plans.h"
#include "um/device.h"
#include "um/memory.h"
#include "um/options.h"

namespace spillway {

/// The near and far memory of what the steps of a training may move, in one memory mode.
class MovableBlocks {
 public:
  virtual ~MovableBlocks() = default;

  /// The memory of the step laid out as `layout`.
  [[nodiscard]] virtual std::unique_ptr<prefetch::StepMemory> make_memory(
      const prefetch::StepLayout& layout, const prefetch::PinnedBlocks& pinned) = 0;
  /// How that memory uses its arena, where it has one.
  [[nodiscard]] virtual std::optional<ArenaUse> arena_use(
      const prefetch::StepLayout& /*layout*/) const {
    return std::nullopt;
  }
  [[nodiscard]] virtual um::Counters counters() const { return {}; }
  /// "unified memory (uffd_move, 2 MiB pages, far RAM)"
  [[nodiscard]] virtual std::string description() const = 0;
};

/// The blocks of the steps that are laid out as `layouts` say. Parameters as StepSpace's.
[[nodiscard]] std::unique_ptr<MovableBlocks> make_movable_blocks(
    um::Device& device, MemoryMode mode, um::ManagedOptions options,
    std::span<const prefetch::StepLayout* const> layouts, um::Memory& near_memory,
    um::Ledger& ledger);

}  // namespace spillway
