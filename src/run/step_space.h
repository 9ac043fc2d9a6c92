#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "prefetch/placement/placed_step.h"
#include "prefetch/runtime/step_layout.h"
#include "prefetch/runtime/step_memory.h"
#include "prefetch/state_home.h"
#include "prefetch/task_graph.h"
#include "src/plan/plans.h"
#include "src/plan/workload.h"
#include "um/bytes.h"
#include "um/device.h"
#include "um/memory.h"
#include "um/options.h"

namespace spillway {

/// Returns the layouts of the training's step and the evaluation's. They refer to both arguments.
[[nodiscard]] std::vector<prefetch::StepLayout> layouts_of(const Workload& workload,
                                                           const Plans& plans);

/// Returns the most bytes that the plans of `layouts` ever have in far memory. `page` as in them.
[[nodiscard]] um::Bytes far_memory(std::span<const prefetch::StepLayout> layouts, MemoryMode mode,
                                   um::Bytes page);

/// The near and far memory of what the steps of a training may move, in one memory mode.
class MovableBlocks {
 public:
  virtual ~MovableBlocks() = default;

  /// The memory of the step laid out as `layout`.
  [[nodiscard]] virtual std::unique_ptr<prefetch::StepMemory> make_memory(
      const prefetch::StepLayout& layout, const prefetch::PinnedBlocks& pinned) = 0;
  /// How that memory uses its arena, where it has one.
  [[nodiscard]] virtual std::optional<prefetch::ArenaUse> arena_use(
      const prefetch::StepLayout& /*layout*/) const {
    return std::nullopt;
  }
  [[nodiscard]] virtual um::Counters counters() const { return {}; }
  /// "unified memory (uffd_move, 2 MiB pages, far RAM)"
  [[nodiscard]] virtual std::string description() const = 0;
};

/// The blocks of the steps that are laid out as `layouts` say. Parameters as StepSpace's.
[[nodiscard]] std::unique_ptr<MovableBlocks> make_movable_blocks(
    um::Device& device, MemoryMode mode, um::ManagedOptions options,
    std::span<const prefetch::StepLayout* const> layouts, um::Bytes state_at_once,
    um::Memory& near_memory, um::Ledger& ledger);

/// The near and far memory that the steps of a training share (they never run at the same time).
class StepSpace {
 public:
  /// For steps laid out as `layouts` say, with room for `state_at_once` of the state that moves
  /// between them (Workload::state_at_once). `options` gives page, far memory, link and paging; its
  /// sizes are worked out here. Near memory is charged to `ledger`; `near_memory` is limited by the
  /// same ledger. Everything must outlive the space.
  /// Throws: um::Error when the device cannot make it; um::OutOfMemory.
  StepSpace(um::Device& device, MemoryMode mode, const um::ManagedOptions& options,
            const std::vector<const prefetch::StepLayout*>& layouts, um::Bytes state_at_once,
            um::Memory& near_memory, um::Ledger& ledger);

  /// The memory of the step laid out as `layout`, one of those given.
  [[nodiscard]] std::unique_ptr<prefetch::StepMemory> make_memory(
      const prefetch::StepLayout& layout, const prefetch::PinnedBlocks& pinned) {
    return movable_->make_memory(layout, pinned);
  }
  /// How that memory uses its arena; nothing outside copy mode, or before make_memory().
  [[nodiscard]] std::optional<prefetch::ArenaUse> arena_use(
      const prefetch::StepLayout& layout) const {
    return movable_->arena_use(layout);
  }

  /// The buffer for what is always near, shared by the steps.
  [[nodiscard]] um::Range pinned_buffer() const { return buffer_.bytes(); }
  [[nodiscard]] um::Counters counters() const { return movable_->counters(); }
  [[nodiscard]] std::string description() const { return movable_->description(); }

 private:
  um::Block buffer_;
  std::unique_ptr<MovableBlocks> movable_;
};

/// The largest workspace that may have near memory of its own for all the time, shared by every
/// workspace that is no larger, while the plans of `layouts` still keep their budgets; zero when
/// there is none. A plan counts a workspace only while its run is on, so that a buffer for all may
/// not fit; larger workspaces stay what the plan makes of them. In whole pages, at most `most`.
/// Complexity: a verification of each plan for each size of a workspace, at most.
[[nodiscard]] um::Bytes workspace_buffer(std::span<const prefetch::StepLayout* const> layouts,
                                         um::Bytes most);

/// Where each of several steps of a network has the movable state that they share: a block of one
/// name is in one place. `page` as in their plans. In the order of `graphs`.
[[nodiscard]] std::vector<prefetch::StatePlaces> share_state(
    std::span<const prefetch::TaskGraph* const> graphs, um::Bytes page);

}  // namespace spillway
