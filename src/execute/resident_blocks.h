#pragma once

#include <span>

#include "src/execute/movable_blocks.h"
#include "um/memory.h"

namespace spillway {

/// The bytes of a slab that holds each of the steps.
[[nodiscard]] um::Bytes slab_size(std::span<const prefetch::StepLayout* const> layouts);

/// Everything near all the time, in one slab.
class ResidentBlocks final : public MovableBlocks {
 public:
  ResidentBlocks(std::span<const prefetch::StepLayout* const> layouts, um::Memory& near_memory)
      : slab_{near_memory, slab_size(layouts)} {}

  [[nodiscard]] std::unique_ptr<prefetch::StepMemory> make_memory(
      const prefetch::StepLayout& layout, const prefetch::PinnedBlocks& pinned) override;
  [[nodiscard]] std::string description() const override { return "everything resident"; }

 private:
  um::Block slab_;
};

}  // namespace spillway
