#include "src/execute/step_space.h"

#include <algorithm>
#include <utility>

#include "src/execute/copied_blocks.h"
#include "src/execute/managed_blocks.h"
#include "src/execute/resident_blocks.h"

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

std::unique_ptr<MovableBlocks> make_movable(um::Device& device, MemoryMode mode,
                                            um::ManagedOptions options,
                                            const std::vector<const StepLayout*>& layouts,
                                            um::Memory& near_memory, um::Ledger& ledger) {
  if (mode == MemoryMode::kResident) return std::make_unique<ResidentBlocks>(layouts, near_memory);
  options.near = um::round_down(ledger.limit() - ledger.in_use(), options.page);
  if (mode == MemoryMode::kCopy) {
    return std::make_unique<CopiedBlocks>(device, options, layouts, ledger);
  }
  return std::make_unique<ManagedBlocks>(device, std::move(options), layouts, ledger);
}

}  // namespace

StepSpace::StepSpace(um::Device& device, MemoryMode mode, const um::ManagedOptions& options,
                     const std::vector<const StepLayout*>& layouts, um::Memory& near_memory,
                     um::Ledger& ledger)
    : buffer_{near_memory, buffer_size(layouts)},
      movable_{make_movable(device, mode, options, layouts, near_memory, ledger)} {}

}  // namespace spillway
