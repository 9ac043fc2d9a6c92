#include "src/execute/copied_blocks.h"

#include <algorithm>

#include "prefetch/runtime/copy_memory.h"

namespace spillway {
namespace {

using prefetch::StepLayout;
using um::Bytes;

Bytes far_size(std::span<const StepLayout* const> layouts) {
  Bytes size;
  for (const StepLayout* layout : layouts) {
    size = std::max(size, prefetch::FarPlacement{*layout}.extent);
  }
  return size;
}

}  // namespace

CopiedBlocks::CopiedBlocks(um::Device& device, const um::ManagedOptions& options,
                           std::span<const StepLayout* const> layouts, um::Ledger& ledger)
    : ledger_{ledger},
      space_{device.make_copy_space({.size = std::max(options.page, far_size(layouts)),
                                     .near = options.near,
                                     .far = options.far,
                                     .link = options.link})} {}

std::unique_ptr<prefetch::StepMemory> CopiedBlocks::make_memory(
    const StepLayout& layout, const prefetch::PinnedBlocks& pinned) {
  auto memory = std::make_unique<prefetch::CopyMemory>(layout, pinned, space_->near(),
                                                       space_->copies(), ledger_);
  arena_uses_[&layout] = {.extent = memory->placed().placement.extent,
                          .room = Bytes{space_->near().size()}};
  return memory;
}

std::optional<ArenaUse> CopiedBlocks::arena_use(const StepLayout& layout) const {
  const auto found = arena_uses_.find(&layout);
  if (found == arena_uses_.end()) return std::nullopt;
  return found->second;
}

}  // namespace spillway
