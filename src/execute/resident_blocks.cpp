#include "src/execute/resident_blocks.h"

#include <algorithm>

#include "prefetch/runtime/resident_memory.h"
#include "prefetch/runtime/slab_address.h"

namespace spillway {

um::Bytes slab_size(std::span<const prefetch::StepLayout* const> layouts) {
  um::Bytes size;
  for (const prefetch::StepLayout* layout : layouts) {
    size = std::max(size, layout->placement.extent);
  }
  return size;
}

std::unique_ptr<prefetch::StepMemory> ResidentBlocks::make_memory(
    const prefetch::StepLayout& layout, const prefetch::PinnedBlocks& pinned) {
  return std::make_unique<prefetch::ResidentMemory>(
      prefetch::SlabAddress{layout, pinned, slab_.bytes()});
}

}  // namespace spillway
