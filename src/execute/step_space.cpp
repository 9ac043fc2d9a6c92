#include "src/execute/step_space.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "prefetch/runtime/copy_memory.h"
#include "prefetch/runtime/managed_memory.h"
#include "prefetch/runtime/resident_memory.h"
#include "prefetch/runtime/slab_address.h"

namespace spillway {
namespace {

using prefetch::StepLayout;
using um::Bytes;

Bytes buffer_size(const std::vector<const StepLayout*>& layouts) {
  Bytes size;
  for (const StepLayout* layout : layouts) {
    size = std::max(size, prefetch::PinnedBlocks::buffer_size(layout->graph, layout->block_sizes));
  }
  return size;
}

Bytes slab_size(const std::vector<const StepLayout*>& layouts) {
  Bytes size;
  for (const StepLayout* layout : layouts) size = std::max(size, layout->placement.extent);
  return size;
}

// Of the slab, what any of the steps sends far: the pages of one are those of another.
Bytes far_part(const std::vector<const StepLayout*>& layouts, Bytes slab, Bytes page) {
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

Bytes far_size(const std::vector<const StepLayout*>& layouts) {
  Bytes size;
  for (const StepLayout* layout : layouts) {
    size = std::max(size, prefetch::FarPlacement{*layout}.extent);
  }
  return size;
}

}  // namespace

StepSpace::StepSpace(um::Device& device, MemoryMode mode, um::ManagedOptions options,
                     const std::vector<const StepLayout*>& layouts, um::Memory& near_memory,
                     um::Ledger& ledger)
    : mode_{mode}, ledger_{ledger}, buffer_{near_memory, buffer_size(layouts)} {
  if (mode == MemoryMode::kResident) {
    slab_ = um::Block{near_memory, slab_size(layouts)};
    return;
  }
  const Bytes page = options.page;
  options.near = um::round_down(ledger.limit() - ledger.in_use(), page);
  if (mode == MemoryMode::kManaged) {
    options.size = std::max(page, slab_size(layouts));
    options.near = std::min(options.near, options.size);
    options.far.used = far_part(layouts, options.size, page);
    managed_ = device.make_managed_space(options, ledger);
  } else {
    copy_ = device.make_copy_space({.size = std::max(page, far_size(layouts)),
                                    .near = options.near,
                                    .far = options.far,
                                    .link = options.link});
  }
}

std::unique_ptr<prefetch::StepMemory> StepSpace::make_memory(const StepLayout& layout,
                                                             const prefetch::PinnedBlocks& pinned) {
  if (mode_ == MemoryMode::kCopy) {
    auto memory = std::make_unique<prefetch::CopyMemory>(layout, pinned, copy_->near(),
                                                         copy_->copies(), ledger_);
    arena_uses_[&layout] = {.extent = memory->placed().placement.extent,
                            .room = Bytes{copy_->near().size()}};
    return memory;
  }
  const um::Range slab = managed_ != nullptr ? managed_->slab() : slab_.bytes();
  const prefetch::SlabAddress address{layout, pinned, slab};
  if (mode_ == MemoryMode::kResident) return std::make_unique<prefetch::ResidentMemory>(address);
  return std::make_unique<prefetch::ManagedMemory>(layout, address, managed_->hints());
}

std::optional<ArenaUse> StepSpace::arena_use(const StepLayout& layout) const {
  const auto found = arena_uses_.find(&layout);
  if (found == arena_uses_.end()) return std::nullopt;
  return found->second;
}

um::Counters StepSpace::counters() const {
  if (managed_ != nullptr) return managed_->counters();
  return copy_ != nullptr ? copy_->counters() : um::Counters{};
}

std::string StepSpace::description() const {
  switch (mode_) {
    case MemoryMode::kManaged:
      return "unified memory (" + managed_->description() + ")";
    case MemoryMode::kCopy:
      return "explicit copies (" + copy_->description() + ")";
    case MemoryMode::kResident:
      return "everything resident";
  }
  return "";
}

}  // namespace spillway
