#include "prefetch/runtime/slab_address.h"

#include "um/error.h"

namespace spillway::prefetch {

SlabAddress::SlabAddress(const StepLayout& layout, const PinnedBlocks& pinned, um::Range slab,
                         um::Range workspaces)
    : layout_{layout}, pinned_{pinned}, slab_{slab}, workspaces_{workspaces} {
  um::expects(slab.size() >= layout.placement.extent.count(), "a slab that holds the step");
}

std::byte* SlabAddress::block(DataId id) const {
  if (!layout_.block_sizes.is_movable(id)) return pinned_.address(id);
  return pages(id).data();
}

std::byte* SlabAddress::workspace(Position position) const {
  const RunLayout& run = layout_.runs[position];
  if (run.has_small_workspace) return pinned_.small_workspace();
  if (run.workspace == um::Bytes{}) return nullptr;
  const um::Range pages = workspace_pages(position);
  return pages.empty() ? workspaces_.data() : pages.data();
}

um::Range SlabAddress::pages(DataId id) const {
  const um::Bytes offset = layout_.placement.blocks[static_cast<std::size_t>(id)];
  return slab_.subspan(offset.count(), layout_.block_sizes.size(id).count());
}

um::Range SlabAddress::pages(const Move& move) const {
  return pages(move.data).subspan(move.offset.count(), move.size.count());
}

um::Range SlabAddress::workspace_pages(Position position) const {
  const um::Bytes size = layout_.runs[position].workspace;
  if (size.count() <= workspaces_.size()) return {};
  return slab_.subspan(layout_.placement.workspaces[position].count(), size.count());
}

}  // namespace spillway::prefetch
