#include "src/run/step_space.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/runtime/copy_memory.h"
#include "prefetch/runtime/managed_memory.h"
#include "prefetch/runtime/resident_memory.h"
#include "prefetch/runtime/step_layout.h"
#include "prefetch/verify/verify.h"
#include "um/device.h"
#include "um/options.h"

namespace spillway {
namespace {

using prefetch::PinnedBlocks;
using prefetch::SlabAddress;
using prefetch::StatePlaces;
using prefetch::StepLayout;
using prefetch::StepMemory;
using um::Bytes;
using Layouts = std::span<const StepLayout* const>;

// Without the workspaces that lie in the buffer, the plan must keep a budget that is smaller by it.
bool has_room(const StepLayout& layout, Bytes buffer) {
  if (buffer >= layout.plan.budget) return false;
  prefetch::TaskGraph graph = layout.graph;
  for (prefetch::Task& task : graph.tasks) {
    for (prefetch::Algorithm& algorithm : task.algorithms) {
      const Bytes workspace = layout.block_sizes.workspace_size(algorithm.workspace);
      if (workspace > Bytes{} && workspace <= buffer) algorithm.workspace = Bytes{};
    }
  }
  prefetch::Plan plan = layout.plan;
  plan.graph = prefetch::fingerprint(graph);
  plan.budget -= buffer;
  return std::holds_alternative<prefetch::Verified>(prefetch::verify(graph, plan));
}

Bytes slab_size(Layouts layouts) {
  Bytes size;
  for (const StepLayout* layout : layouts) size = std::max(size, layout->placement.extent);
  return size;
}

Bytes far_size(Layouts layouts) {
  Bytes size;
  for (const StepLayout* layout : layouts) {
    size = std::max(size, prefetch::FarPlacement{*layout}.extent);
  }
  return size;
}

// Of the slab, what any of the steps sends far: the pages of one are those of another. State may
// all be far when another step has it.
Bytes far_part(Layouts layouts, Bytes slab, Bytes page) {
  std::vector<bool> goes_far(slab / page);
  for (const StepLayout* layout : layouts) {
    if (layout->plan.residency == prefetch::Residency::kOnDemand) return slab;  // any page
    const auto state = static_cast<std::ptrdiff_t>(layout->state.extent / page);
    std::fill(goes_far.begin(), goes_far.begin() + state, true);
    for (const prefetch::Move& move : layout->plan.offloads) {
      const Bytes begin =
          layout->placement.blocks[static_cast<std::size_t>(move.data)] + move.offset;
      const auto first = goes_far.begin() + static_cast<std::ptrdiff_t>(begin / page);
      std::fill(first, first + static_cast<std::ptrdiff_t>(move.size / page), true);
    }
  }
  return static_cast<std::uint64_t>(std::ranges::count(goes_far, true)) * page;
}

Bytes room(const um::Ledger& ledger, Bytes page) {
  return um::round_down(ledger.limit() - ledger.in_use(), page);
}

// Everything near all the time, in one slab.
class ResidentBlocks final : public MovableBlocks {
 public:
  ResidentBlocks(Layouts layouts, um::Memory& near_memory)
      : slab_{near_memory, slab_size(layouts)} {}

  [[nodiscard]] std::unique_ptr<StepMemory> make_memory(const StepLayout& layout,
                                                        const PinnedBlocks& pinned) override {
    return std::make_unique<prefetch::ResidentMemory>(SlabAddress{layout, pinned, slab_.bytes()});
  }
  [[nodiscard]] std::string description() const override { return "everything resident"; }

 private:
  um::Block slab_;
};

Bytes largest_workspace(Layouts layouts) {
  Bytes largest;
  for (const StepLayout* layout : layouts) {
    for (const prefetch::RunLayout& run : layout->runs) largest = std::max(largest, run.workspace);
  }
  return largest;
}

// Unified memory driven by a plan's hints. Where a driver moves it, workspaces are plain memory as
// far as the budget allows: they need no hints then.
class ManagedBlocks final : public MovableBlocks {
 public:
  ManagedBlocks(um::Device& device, um::ManagedOptions options, Layouts layouts,
                Bytes state_at_once, um::Memory& near_memory, um::Ledger& ledger)
      : is_plain_better_{!device.evicts()},
        largest_{largest_workspace(layouts)},
        workspaces_{near_memory,
                    is_plain_better_
                        ? workspace_buffer(layouts, um::saturating_difference(
                                                        room(ledger, options.page), state_at_once))
                        : Bytes{}} {
    options.near = room(ledger, options.page);
    options.size = std::max(options.page, slab_size(layouts));
    options.near = std::min(options.near, options.size);
    options.far.used = far_part(layouts, options.size, options.page);
    space_ = device.make_managed_space(options, ledger);
  }

  [[nodiscard]] std::unique_ptr<StepMemory> make_memory(const StepLayout& layout,
                                                        const PinnedBlocks& pinned) override {
    return std::make_unique<prefetch::ManagedMemory>(
        layout, SlabAddress{layout, pinned, space_->slab(), workspaces_.bytes()}, space_->hints());
  }
  [[nodiscard]] um::Counters counters() const override { return space_->counters(); }
  [[nodiscard]] std::string description() const override {
    return "unified memory (" + space_->description() + where_workspaces_are() + ")";
  }

 private:
  [[nodiscard]] std::string where_workspaces_are() const {
    if (!is_plain_better_ || largest_ == Bytes{}) return {};
    if (workspaces_.size() == Bytes{}) return ", workspaces in it";
    if (workspaces_.size() == largest_) return ", workspaces beside it";
    return ", workspaces up to " + to_string(workspaces_.size()) + " beside it";
  }

  const bool is_plain_better_;
  const Bytes largest_;
  um::Block workspaces_;
  std::unique_ptr<um::ManagedSpace> space_;
};

// Explicit copies between an arena of near memory and far memory.
class CopiedBlocks final : public MovableBlocks {
 public:
  CopiedBlocks(um::Device& device, const um::ManagedOptions& options, Layouts layouts,
               um::Ledger& ledger)
      : ledger_{ledger},
        space_{device.make_copy_space({.size = std::max(options.page, far_size(layouts)),
                                       .near = options.near,
                                       .far = options.far,
                                       .link = options.link})} {}

  [[nodiscard]] std::unique_ptr<StepMemory> make_memory(const StepLayout& layout,
                                                        const PinnedBlocks& pinned) override {
    auto memory = std::make_unique<prefetch::CopyMemory>(layout, pinned, space_->near(),
                                                         space_->copies(), ledger_);
    arena_uses_[&layout] = {.extent = memory->placed().placement.extent,
                            .room = Bytes{space_->near().size()}};
    return memory;
  }
  [[nodiscard]] std::optional<prefetch::ArenaUse> arena_use(
      const StepLayout& layout) const override {
    const auto found = arena_uses_.find(&layout);
    if (found == arena_uses_.end()) return std::nullopt;
    return found->second;
  }
  [[nodiscard]] um::Counters counters() const override { return space_->counters(); }
  [[nodiscard]] std::string description() const override {
    return "explicit copies (" + space_->description() + ")";
  }

 private:
  um::Ledger& ledger_;
  std::unique_ptr<um::CopySpace> space_;
  std::map<const StepLayout*, prefetch::ArenaUse> arena_uses_;
};

Bytes buffer_size(const std::vector<const StepLayout*>& layouts) {
  Bytes size;
  for (const StepLayout* layout : layouts) {
    size = std::max(size, prefetch::PinnedBlocks::buffer_size(layout->graph, layout->block_sizes));
  }
  return size;
}

}  // namespace

std::vector<StepLayout> layouts_of(const Workload& workload, const Plans& plans) {
  const std::array graphs{&workload.training().graph, &workload.evaluation().graph};
  const std::vector<StatePlaces> places = share_state(graphs, workload.page());
  std::vector<StepLayout> layouts;
  layouts.reserve(graphs.size());  // nothing may move: memories and executors refer to them
  layouts.emplace_back(*graphs[0], plans.training, places[0]);
  layouts.emplace_back(*graphs[1], plans.evaluation, places[1]);
  return layouts;
}

um::Bytes far_memory(std::span<const StepLayout> layouts, MemoryMode mode, um::Bytes page) {
  std::vector<const StepLayout*> all;
  for (const StepLayout& layout : layouts) all.push_back(&layout);
  if (mode == MemoryMode::kResident) return {};
  return mode == MemoryMode::kCopy ? far_size(all) : far_part(all, slab_size(all), page);
}

um::Bytes workspace_buffer(std::span<const StepLayout* const> layouts, um::Bytes most) {
  std::set<Bytes, std::greater<>> sizes;
  for (const StepLayout* layout : layouts) {
    if (layout->plan.residency != prefetch::Residency::kPlanned) return {};
    for (const prefetch::RunLayout& run : layout->runs) sizes.insert(run.workspace);
  }
  const auto found = std::ranges::find_if(sizes, [&](Bytes size) {
    return size <= most && std::ranges::all_of(layouts, [&](const StepLayout* each) {
             return has_room(*each, size);
           });
  });
  return found == sizes.end() ? Bytes{} : *found;
}

std::unique_ptr<MovableBlocks> make_movable_blocks(um::Device& device, MemoryMode mode,
                                                   um::ManagedOptions options, Layouts layouts,
                                                   Bytes state_at_once, um::Memory& near_memory,
                                                   um::Ledger& ledger) {
  if (mode == MemoryMode::kResident) return std::make_unique<ResidentBlocks>(layouts, near_memory);
  if (mode == MemoryMode::kManaged) {
    return std::make_unique<ManagedBlocks>(device, std::move(options), layouts, state_at_once,
                                           near_memory, ledger);
  }
  options.near = room(ledger, options.page);
  return std::make_unique<CopiedBlocks>(device, options, layouts, ledger);
}

StepSpace::StepSpace(um::Device& device, MemoryMode mode, const um::ManagedOptions& options,
                     const std::vector<const StepLayout*>& layouts, um::Bytes state_at_once,
                     um::Memory& near_memory, um::Ledger& ledger)
    : buffer_{near_memory, buffer_size(layouts)},
      movable_{make_movable_blocks(device, mode, options, layouts, state_at_once, near_memory,
                                   ledger)} {}

std::vector<StatePlaces> share_state(std::span<const prefetch::TaskGraph* const> graphs,
                                     Bytes page) {
  std::vector<StatePlaces> places;
  std::unordered_map<std::string_view, Bytes> by_name;
  Bytes extent;
  for (const prefetch::TaskGraph* const graph : graphs) {
    const prefetch::BlockSizes block_sizes{*graph, page};
    StatePlaces& own = places.emplace_back();
    own.offsets.resize(graph->data.size());
    for (std::size_t i = 0; i < graph->data.size(); ++i) {
      const prefetch::DataBlock& block = graph->data[i];
      const Bytes size = block_sizes.size(prefetch::DataId(i));
      if (block.kind != prefetch::DataKind::kState || size == Bytes{}) continue;
      const auto [place, is_new] = by_name.emplace(block.name, extent);
      if (is_new) extent += size;
      own.offsets[i] = place->second;
    }
  }
  for (StatePlaces& own : places) own.extent = extent;
  return places;
}

}  // namespace spillway
