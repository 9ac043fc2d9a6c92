#include "prefetch/runtime/step_layout.h"

#include <optional>
#include <utility>

#include "um/error.h"

namespace spillway::prefetch {
namespace {

using um::Bytes;

um::Access access_of(const BlockAccess& access) {
  if (!access.writes) return um::Access::kRead;
  return access.reads ? um::Access::kReadWrite : um::Access::kWrite;
}

void expect_sound(const StatePlaces& state, const TaskGraph& graph, const BlockSizes& block_sizes) {
  um::expects(state.offsets.size() == graph.data.size(), "one state offset a block");
  for (std::size_t i = 0; i < graph.data.size(); ++i) {
    if (graph.data[i].kind != DataKind::kState || !block_sizes.is_movable(DataId(i))) continue;
    um::expects(state.offsets[i].count() % block_sizes.page().count() == 0 &&
                    state.offsets[i] + block_sizes.size(DataId(i)) <= state.extent,
                "state in whole pages, within its extent");
  }
}

// With memory of its own.
bool is_small_tensor(const TaskGraph& graph, const BlockSizes& block_sizes, DataId id) {
  return graph[id].kind == DataKind::kTensor && !block_sizes.is_movable(id) &&
         !block_sizes.host_of(graph, id);
}

}  // namespace

StepLayout::StepLayout(const TaskGraph& task_graph, const Plan& step_plan)
    : StepLayout{task_graph, step_plan,
                 place_state(task_graph, BlockSizes{task_graph, step_plan.page})} {}

StepLayout::StepLayout(const TaskGraph& task_graph, const Plan& step_plan, StatePlaces places)
    : graph{task_graph},
      plan{step_plan},
      block_sizes{task_graph, step_plan.page},
      runs(step_plan.runs.size()),
      state{std::move(places)},
      home{task_graph, block_sizes, step_plan} {
  expect_sound(state, graph, block_sizes);
  const std::vector<Life> lives = find_lives(graph, plan.runs);
  placement = place(graph, block_sizes, plan.runs, lives, state);
  for (const Life& life : lives) {
    if (!block_sizes.is_movable(life.data)) continue;
    for (const BlockAccess& access : life.accesses) {
      runs[access.position].operands.push_back({.data = life.data, .access = access_of(access)});
    }
    if (life.outlives_step()) {
      used_state_.push_back(life.data);
      if (life.is_sent) runs[life.begin()].begins.push_back(life.data);
      continue;
    }
    runs[life.begin()].begins.push_back(life.data);
    runs[life.last()].ends.push_back(life.data);
  }
  for (Position p = 0; p < runs.size(); ++p) {
    const TaskRun& run = plan.runs[p];
    const um::Bytes workspace = graph[run.task].algorithms[run.algorithm].workspace;
    runs[p].workspace = block_sizes.workspace_size(workspace);
    runs[p].has_small_workspace = workspace > um::Bytes{} && runs[p].workspace == um::Bytes{};
  }
}

Bytes PinnedBlocks::buffer_size(const TaskGraph& graph, const BlockSizes& block_sizes) {
  Bytes size = um::round_up(block_sizes.small_workspace(), kNearAlignment);
  for (std::size_t i = 0; i < graph.data.size(); ++i) {
    if (is_small_tensor(graph, block_sizes, DataId(i))) {
      size += um::round_up(graph.data[i].size, kNearAlignment);
    }
  }
  return size;
}

PinnedBlocks::PinnedBlocks(const TaskGraph& graph, const BlockSizes& block_sizes,
                           std::span<std::byte* const> state, um::Range buffer)
    : addresses_(state.begin(), state.end()) {
  um::expects(state.size() == graph.data.size(), "one state address a block");
  um::expects(buffer.size() >= buffer_size(graph, block_sizes).count(), "a large enough buffer");
  std::byte* next = buffer.data();
  small_workspace_ = next;
  next += um::round_up(block_sizes.small_workspace(), kNearAlignment).count();
  for (std::size_t i = 0; i < graph.data.size(); ++i) {
    if (!is_small_tensor(graph, block_sizes, DataId(i))) continue;
    addresses_[i] = next;
    next += um::round_up(graph.data[i].size, kNearAlignment).count();
  }
  for (std::size_t i = 0; i < graph.data.size(); ++i) {
    const std::optional<DataId> host = block_sizes.host_of(graph, DataId(i));
    if (host) addresses_[i] = addresses_[static_cast<std::size_t>(*host)];
  }
}

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

FarPlacement::FarPlacement(const StepLayout& layout)
    : offsets{layout.state.offsets}, extent{layout.state.extent} {
  std::vector<bool> has_place(offsets.size(), false);
  for (const Move& move : layout.plan.offloads) {
    const auto data = static_cast<std::size_t>(move.data);
    if (has_place[data] || layout.graph[move.data].kind == DataKind::kState) continue;
    has_place[data] = true;
    offsets[data] = extent;
    extent += layout.block_sizes.size(move.data);
  }
}

}  // namespace spillway::prefetch
