#include "prefetch/runtime/managed_memory.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "prefetch/runtime/step_memory.h"

namespace spillway::prefetch {
namespace {

using um::MemoryTier;

std::vector<um::Range> ranges_where(const std::vector<bool>& pages, bool value, um::Range region,
                                    std::size_t page) {
  std::vector<um::Range> ranges;
  for (std::size_t begin = 0; begin < pages.size();) {
    std::size_t end = begin;
    while (end < pages.size() && pages[end] == value) ++end;
    if (end > begin) ranges.push_back(region.subspan(begin * page, (end - begin) * page));
    begin = std::max(end, begin + 1);
  }
  return ranges;
}

// Declares a use of ranges from construction to destruction.
class DeclaredUse {
 public:
  DeclaredUse(um::Hints& hints, std::span<const um::Range> ranges, um::Access access)
      : hints_{hints} {
    for (const um::Range range : ranges) uses_.push_back({.range = range, .access = access});
    hints_.begin_use(uses_);
  }
  DeclaredUse(const DeclaredUse&) = delete;
  DeclaredUse& operator=(const DeclaredUse&) = delete;
  ~DeclaredUse() { hints_.end_use(uses_); }

 private:
  um::Hints& hints_;
  std::vector<um::Use> uses_;
};

std::vector<std::vector<um::Use>> find_uses(const StepLayout& layout, const SlabAddress& address) {
  std::vector<std::vector<um::Use>> uses(layout.runs.size());
  for (Position p = 0; p < layout.runs.size(); ++p) {
    for (const Operand& operand : layout.runs[p].operands) {
      uses[p].push_back({.range = address.pages(operand.data), .access = operand.access});
    }
    const um::Range workspace = address.workspace_pages(p);
    if (!workspace.empty()) uses[p].push_back({.range = workspace, .access = um::Access::kWrite});
  }
  return uses;
}

}  // namespace

ManagedState::ManagedState(const StepLayout& layout, const SlabAddress& address, um::Hints& hints)
    : layout_{layout}, address_{address}, hints_{hints} {
  if (layout.plan.residency == Residency::kOnDemand) return;
  // By page of the state region: near between steps. Pages that the step does not use are far.
  const um::Bytes page = layout.block_sizes.page();
  std::vector<bool> near(layout.state.extent / page, false);
  for (const DataId id : layout.used_state()) {
    const std::uint64_t first = layout.state.offsets[static_cast<std::size_t>(id)] / page;
    const std::vector<bool>& far = layout.home.far_pages(id);
    for (std::size_t i = 0; i < far.size(); ++i) near[first + i] = !far[i];
  }
  near_ = ranges_where(near, true, address_.state(), layout.plan.page.count());
  far_ = ranges_where(near, false, address_.state(), layout.plan.page.count());
}

void ManagedState::bring_home() {
  if (is_home_) return;
  move(far_, MemoryTier::kFar);  // first: the others take its room
  move(near_, MemoryTier::kNear);
  is_home_ = true;
}

void ManagedState::use(std::span<const DataId> ids, um::Access access,
                       const StepMemory::StateUse& use) {
  std::vector<um::Range> blocks;
  std::vector<std::byte*> addresses;
  for (const DataId id : ids) {
    blocks.push_back(address_.pages(id));
    addresses.push_back(blocks.back().data());
  }
  const bool are_moved = layout_.plan.residency == Residency::kPlanned && !are_near(blocks);
  if (are_moved) {
    if (is_home_) move(near_, MemoryTier::kFar);
    is_home_ = false;
    move(blocks, MemoryTier::kNear);
  }
  {
    const DeclaredUse declared{hints_, blocks, access};
    use(addresses);
  }
  if (are_moved) move(blocks, MemoryTier::kFar);
}

void ManagedState::move(const std::vector<um::Range>& ranges, MemoryTier tier) {
  AwaitedMoves moves;
  for (const um::Range range : ranges) hints_.prefetch(range, tier, moves.one_more());
  moves.wait();
}

bool ManagedState::are_near(std::span<const um::Range> blocks) const {
  const auto is_near = [this](um::Range block) {
    return std::ranges::any_of(near_, [&](um::Range range) {
      return range.data() <= block.data() &&
             block.data() + block.size() <= range.data() + range.size();
    });
  };
  return is_home_ && std::ranges::all_of(blocks, is_near);
}

ManagedMemory::ManagedMemory(const StepLayout& layout, const SlabAddress& address, um::Hints& hints)
    : layout_{layout},
      address_{address},
      hints_{hints},
      state_{layout, address, hints},
      uses_{find_uses(layout, address)},
      walker_{layout.plan,
              [this](std::uint32_t move, um::Completion done) {
                hints_.prefetch(address_.pages(layout_.plan.offloads[move]), um::MemoryTier::kFar,
                                std::move(done));
                return true;
              },
              [this](std::uint32_t move, um::Completion done) {
                hints_.prefetch(address_.pages(layout_.plan.prefetches[move]),
                                um::MemoryTier::kNear, std::move(done));
                return true;
              }} {}

void ManagedMemory::with_state(std::span<const DataId> ids, um::Access access,
                               const StateUse& use) {
  state_.use(ids, access, use);
}

void ManagedMemory::begin_step() {
  state_.bring_home();
  awaited_ = 0;
  walker_.begin_step();
}

// A prefetch allocates near memory when it is issued, so only the kernel must wait for its end.
// Room freed by an offload is counted on the host, after the offload has ended.
void ManagedMemory::begin_run(Position position) {
  position_ = position;
  walker_.wait_for_moves({.offloads = layout_.plan.runs[position].after.offloads});
  wait_for_prefetches(layout_.plan.runs[position].after.prefetches);
  if (gives_hints()) {
    for (const DataId id : layout_.runs[position].begins) hints_.populate(address_.pages(id));
    const um::Range workspace = address_.workspace_pages(position);
    if (!workspace.empty()) hints_.populate(workspace);
  }
  hints_.begin_use(uses_[position]);
}

void ManagedMemory::wait_for_prefetches(std::uint32_t count) {
  for (; awaited_ < count; ++awaited_) {
    walker_.wait_until_issued(awaited_ + 1);
    if (hints_.lets_launches_wait(address_.pages(layout_.plan.prefetches[awaited_]))) continue;
    walker_.wait_for_moves({.prefetches = awaited_ + 1});
  }
}

void ManagedMemory::after_launch(Position position) {
  if (!gives_hints()) return;
  for (const DataId id : layout_.runs[position].ends) hints_.retire(address_.pages(id));
  const um::Range workspace = address_.workspace_pages(position);
  if (!workspace.empty()) hints_.retire(workspace);
}

void ManagedMemory::end_run(Position position) {
  hints_.end_use(uses_[position]);
  if (gives_hints()) {
    for (const DataId id : layout_.runs[position].ends) hints_.discard(address_.pages(id));
    const um::Range workspace = address_.workspace_pages(position);
    if (!workspace.empty()) hints_.discard(workspace);
  }
  walker_.end_run();
}

void ManagedMemory::end_step() {
  walker_.end_step();
  hints_.check();  // a page fault of the last run may have failed
}

}  // namespace spillway::prefetch
