#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/liveness.h"
#include "prefetch/plan.h"
#include "prefetch/slab_placement.h"
#include "prefetch/state_home.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"
#include "um/hints.h"

namespace spillway::prefetch {

/// A movable block that a run touches.
struct Operand {
  DataId data;
  um::Access access;
};

/// What one run does to movable memory.
struct RunLayout {
  std::vector<Operand> operands;
  std::vector<DataId> begins;  ///< blocks whose life begins here: near memory without content
  std::vector<DataId> ends;    ///< blocks nobody needs after it
  um::Bytes workspace;         ///< whole pages; zero when the workspace is small or absent
  bool has_small_workspace = false;
};

/// A plan made ready to execute: what a StepMemory needs to know, worked out once. `graph` and
/// `plan` must outlive it.
struct StepLayout {
  /// Its movable state lies where place_state() says. Requires: `plan` verifies against `graph`.
  StepLayout(const TaskGraph& graph, const Plan& plan);
  /// Its movable state lies where `state` says, which all steps that share it agree on.
  /// Requires: offsets are multiples of the plan's page, and whole blocks lie apart in the extent.
  StepLayout(const TaskGraph& graph, const Plan& plan, StatePlaces state);

  /// Movable state that some run of the step uses. All other state is far the whole step long.
  [[nodiscard]] const std::vector<DataId>& used_state() const { return used_state_; }

  const TaskGraph& graph;
  const Plan& plan;
  BlockSizes block_sizes;
  std::vector<RunLayout> runs;  ///< by position
  StatePlaces state;            ///< in the slab, and in far memory
  StateHome home;               ///< where its pages are between steps
  Placement placement;          ///< in the slab of the resident and managed modes

 private:
  std::vector<DataId> used_state_;
};

/// The addresses of what is never moved: state, small tensors, and the buffer that small workspaces
/// share.
class PinnedBlocks {
 public:
  /// Bytes that the small tensors and the small-workspace buffer of a graph take.
  [[nodiscard]] static um::Bytes buffer_size(const TaskGraph& graph, const BlockSizes& block_sizes);

  /// `state` holds the address of every state block, by DataId (null for tensors); `buffer` has at
  /// least buffer_size().
  PinnedBlocks(const TaskGraph& graph, const BlockSizes& block_sizes,
               std::span<std::byte* const> state, um::Range buffer);

  /// Null for a movable block.
  [[nodiscard]] std::byte* address(DataId id) const {
    return addresses_[static_cast<std::size_t>(id)];
  }
  [[nodiscard]] std::byte* small_workspace() const { return small_workspace_; }

 private:
  std::vector<std::byte*> addresses_;
  std::byte* small_workspace_ = nullptr;
};

/// Addresses of a step whose movable blocks lie at fixed places in one slab: the resident and
/// managed modes. All must outlive it.
class SlabAddress {
 public:
  /// Workspaces that fit in `workspaces` lie there, at its begin, and not in the slab.
  /// Requires: `slab` has at least `layout.placement.extent` bytes.
  SlabAddress(const StepLayout& layout, const PinnedBlocks& pinned, um::Range slab,
              um::Range workspaces = {});

  [[nodiscard]] std::byte* block(DataId id) const;
  /// The workspace of the run at `position`; null when it needs none.
  [[nodiscard]] std::byte* workspace(Position position) const;

  /// All pages of a movable block, or some of them.
  [[nodiscard]] um::Range pages(DataId id) const;
  [[nodiscard]] um::Range pages(const Move& move) const;
  /// The pages of all movable state, also of what this step lacks.
  [[nodiscard]] um::Range state() const { return slab_.first(layout_.state.extent.count()); }
  /// The pages of the slab that the workspace of the run at `position` takes; empty when none.
  [[nodiscard]] um::Range workspace_pages(Position position) const;

 private:
  const StepLayout& layout_;
  const PinnedBlocks& pinned_;
  um::Range slab_;
  um::Range workspaces_;
};

/// Where the blocks that a plan offloads lie in far memory: state at the places of
/// StepLayout::state, everything else behind it.
struct FarPlacement {
  explicit FarPlacement(const StepLayout& layout);
  std::vector<um::Bytes> offsets;  ///< by DataId; meaningless for tensors that stay near
  um::Bytes extent;
};

}  // namespace spillway::prefetch
