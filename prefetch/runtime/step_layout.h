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

/// The movable memory that one run touches.
struct RunLayout {
  std::vector<Operand> operands;
  std::vector<DataId> begins;  ///< blocks that become live here, without content
  std::vector<DataId> ends;    ///< blocks that are dead after it
  um::Bytes workspace;         ///< whole pages; zero when the workspace is small or absent
  bool has_small_workspace = false;
};

/// A plan prepared for execution: the precomputed inputs of a StepMemory. `graph` and `plan` must
/// outlive it.
struct StepLayout {
  /// Places movable state by place_state(). Requires: `plan` verifies against `graph`.
  StepLayout(const TaskGraph& graph, const Plan& plan);
  /// Places movable state at `state`, common to all steps that share the state. Requires: offsets
  /// are multiples of the plan's page, and blocks do not overlap in the extent.
  StepLayout(const TaskGraph& graph, const Plan& plan, StatePlaces state);

  /// Returns the movable state that some run uses. All other state is far during the whole step.
  [[nodiscard]] const std::vector<DataId>& used_state() const { return used_state_; }

  const TaskGraph& graph;
  const Plan& plan;
  BlockSizes block_sizes;
  std::vector<RunLayout> runs;  ///< by position
  StatePlaces state;            ///< in the slab and in far memory
  StateHome home;               ///< of state pages between steps
  Placement placement;          ///< in the slab of the resident and managed modes

 private:
  std::vector<DataId> used_state_;
};

/// The addresses of blocks that never move: pinned state, small tensors, and the buffer that small
/// workspaces share.
class PinnedBlocks {
 public:
  /// Returns the bytes of a graph's small tensors and small-workspace buffer.
  [[nodiscard]] static um::Bytes buffer_size(const TaskGraph& graph, const BlockSizes& block_sizes);

  /// `state` holds the address of every state block by DataId (null for tensors).
  /// Requires: `buffer` has at least buffer_size() bytes.
  PinnedBlocks(const TaskGraph& graph, const BlockSizes& block_sizes,
               std::span<std::byte* const> state, um::Range buffer);

  /// Returns null for a movable block.
  [[nodiscard]] std::byte* address(DataId id) const {
    return addresses_[static_cast<std::size_t>(id)];
  }
  [[nodiscard]] std::byte* small_workspace() const { return small_workspace_; }

 private:
  std::vector<std::byte*> addresses_;
  std::byte* small_workspace_ = nullptr;
};

/// The addresses of a step with movable blocks at fixed places in one slab: the resident and
/// managed modes. All arguments must outlive it.
class SlabAddress {
 public:
  /// Workspaces that fit in `workspaces` lie at its beginning instead of in the slab. Requires:
  /// `slab` has at least `layout.placement.extent` bytes.
  SlabAddress(const StepLayout& layout, const PinnedBlocks& pinned, um::Range slab,
              um::Range workspaces = {});

  [[nodiscard]] std::byte* block(DataId id) const;
  /// Returns the workspace of the run at `position`; null when it needs none.
  [[nodiscard]] std::byte* workspace(Position position) const;

  /// Returns all pages of a movable block, or those that `move` moves.
  [[nodiscard]] um::Range pages(DataId id) const;
  [[nodiscard]] um::Range pages(const Move& move) const;
  /// Returns the pages of all movable state, including state that this step does not use.
  [[nodiscard]] um::Range state() const { return slab_.first(layout_.state.extent.count()); }
  /// Returns the slab pages of the run's workspace; empty when it has none in the slab.
  [[nodiscard]] um::Range workspace_pages(Position position) const;

 private:
  const StepLayout& layout_;
  const PinnedBlocks& pinned_;
  um::Range slab_;
  um::Range workspaces_;
};

/// The places of offloaded blocks in far memory: state as in StepLayout::state, all other blocks
/// behind it.
struct FarPlacement {
  explicit FarPlacement(const StepLayout& layout);
  std::vector<um::Bytes> offsets;  ///< by DataId; undefined for tensors that stay near
  um::Bytes extent;
};

}  // namespace spillway::prefetch
