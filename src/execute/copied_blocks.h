#pragma once

#include <map>
#include <span>

#include "src/execute/movable_blocks.h"
#include "um/device.h"
#include "um/device_spaces.h"
#include "um/ledger.h"
#include "um/options.h"

namespace spillway {

/// Explicit copies between an arena of near memory and far memory.
class CopiedBlocks final : public MovableBlocks {
 public:
  /// `options` gives near memory's size, page, far memory and link. The ledger outlives it.
  CopiedBlocks(um::Device& device, const um::ManagedOptions& options,
               std::span<const prefetch::StepLayout* const> layouts, um::Ledger& ledger);

  [[nodiscard]] std::unique_ptr<prefetch::StepMemory> make_memory(
      const prefetch::StepLayout& layout, const prefetch::PinnedBlocks& pinned) override;
  [[nodiscard]] std::optional<ArenaUse> arena_use(
      const prefetch::StepLayout& layout) const override;
  [[nodiscard]] um::Counters counters() const override { return space_->counters(); }
  [[nodiscard]] std::string description() const override {
    return "explicit copies (" + space_->description() + ")";
  }

 private:
  um::Ledger& ledger_;
  std::unique_ptr<um::CopySpace> space_;
  std::map<const prefetch::StepLayout*, ArenaUse> arena_uses_;
};

}  // namespace spillway
