#pragma once

#include <span>

#include "src/execute/movable_blocks.h"
#include "um/device.h"
#include "um/device_spaces.h"
#include "um/ledger.h"
#include "um/options.h"

namespace spillway {

/// Unified memory driven by a plan's hints.
class ManagedBlocks final : public MovableBlocks {
 public:
  /// `options.near` is what near memory may hold at most; its sizes are worked out here.
  ManagedBlocks(um::Device& device, um::ManagedOptions options,
                std::span<const prefetch::StepLayout* const> layouts, um::Ledger& ledger);

  [[nodiscard]] std::unique_ptr<prefetch::StepMemory> make_memory(
      const prefetch::StepLayout& layout, const prefetch::PinnedBlocks& pinned) override;
  [[nodiscard]] um::Counters counters() const override { return space_->counters(); }
  [[nodiscard]] std::string description() const override {
    return "unified memory (" + space_->description() + ")";
  }

 private:
  std::unique_ptr<um::ManagedSpace> space_;
};

}  // namespace spillway
