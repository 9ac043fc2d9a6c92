#pragma once

#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/liveness.h"
#include "prefetch/plan.h"
#include "prefetch/slab_placement.h"
#include "prefetch/state_home.h"
#include "prefetch/state_places.h"
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

}  // namespace spillway::prefetch
