#include "src/execute/managed_blocks.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "prefetch/runtime/managed_memory.h"
#include "prefetch/runtime/slab_address.h"
#include "src/execute/resident_blocks.h"

namespace spillway {
namespace {

using prefetch::StepLayout;
using um::Bytes;

// Of the slab, what any of the steps sends far: the pages of one are those of another.
Bytes far_part(std::span<const StepLayout* const> layouts, Bytes slab, Bytes page) {
  std::vector<bool> goes_far(slab / page);
  for (const StepLayout* layout : layouts) {
    for (const prefetch::Move& move : layout->plan.offloads) {
      const Bytes begin =
          layout->placement.blocks[static_cast<std::size_t>(move.data)] + move.offset;
      const auto first = goes_far.begin() + static_cast<std::ptrdiff_t>(begin / page);
      std::fill(first, first + static_cast<std::ptrdiff_t>(move.size / page), true);
    }
  }
  return static_cast<std::uint64_t>(std::ranges::count(goes_far, true)) * page;
}

}  // namespace

ManagedBlocks::ManagedBlocks(um::Device& device, um::ManagedOptions options,
                             std::span<const StepLayout* const> layouts, um::Ledger& ledger) {
  options.size = std::max(options.page, slab_size(layouts));
  options.near = std::min(options.near, options.size);
  options.far.used = far_part(layouts, options.size, options.page);
  space_ = device.make_managed_space(options, ledger);
}

std::unique_ptr<prefetch::StepMemory> ManagedBlocks::make_memory(
    const StepLayout& layout, const prefetch::PinnedBlocks& pinned) {
  return std::make_unique<prefetch::ManagedMemory>(
      layout, prefetch::SlabAddress{layout, pinned, space_->slab()}, space_->hints());
}

}  // namespace spillway
