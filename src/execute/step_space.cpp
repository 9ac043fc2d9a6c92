#include "src/execute/step_space.h"

#include <algorithm>

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

}  // namespace

StepSpace::StepSpace(um::Device& device, MemoryMode mode, const um::ManagedOptions& options,
                     const std::vector<const StepLayout*>& layouts, um::Memory& near_memory,
                     um::Ledger& ledger)
    : buffer_{near_memory, buffer_size(layouts)},
      movable_{make_movable_blocks(device, mode, options, layouts, near_memory, ledger)} {}

}  // namespace spillway
