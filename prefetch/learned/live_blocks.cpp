#include "prefetch/learned/live_blocks.h"

namespace spillway::prefetch {

void LiveBlocks::allocate(std::uint64_t block, um::Bytes size) {
  blocks_[block] = {.name = {.is_fresh = true, .id = next_ordinal_++, .born = iteration_},
                    .size = size};
}

void LiveBlocks::see(std::uint64_t block, um::Bytes size) {
  blocks_.try_emplace(block, Block{.name = {.is_fresh = false, .id = block}, .size = size});
}

BlockName LiveBlocks::name(std::uint64_t block) const {
  const BlockName by_owner{.is_fresh = false, .id = block};
  const auto found = blocks_.find(block);
  if (found == blocks_.end()) return by_owner;
  const BlockName& name = found->second.name;
  return name.is_fresh && iteration_ - name.born >= kOld ? by_owner : name;
}

}  // namespace spillway::prefetch
