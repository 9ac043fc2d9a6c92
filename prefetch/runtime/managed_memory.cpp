#include "prefetch/runtime/managed_memory.h"

#include <utility>

namespace spillway::prefetch {
namespace {

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

// A prefetch has its room when it is issued: only what is launched must wait for its end. The room
// of an offload is counted here, on the host, when it has ended.
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
