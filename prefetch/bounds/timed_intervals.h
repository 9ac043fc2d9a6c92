#pragma once

#include <span>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/liveness.h"
#include "prefetch/task_graph.h"

namespace spillway::prefetch {

/// A recomputed task's input that is otherwise dead: it must be kept, moved, or recomputed, too.
struct RecomputeInput {
  std::vector<Position> producers;  ///< the tasks that make it; empty: not recomputable
  Position last = 0;                ///< its last use
  double size = 0;                  ///< bytes, divided among the blocks that need it
  double available = 0;             ///< earliest time at which its content is written
};

/// An idle interval of a block with the data for bounds. Times are in seconds, sizes in bytes.
struct TimedInterval : IdleInterval {
  double size = 0;
  double available = 0;  ///< earliest time at which its content is written
  double due = 0;        ///< least time from its next use to the end
  /// The tasks to recompute a discarded block: those that write it, from the overwriting one on.
  /// Empty: the block must not be discarded.
  std::vector<Position> producers;
  /// The inputs of these tasks, besides the block itself.
  std::vector<RecomputeInput> recompute_inputs;

  /// True when the block is idle during the run at `position`.
  [[nodiscard]] bool holds(Position position) const {
    return (from_start || last < position) && position < next;
  }
  /// True for state that no task has written since the step began: an older far copy may be valid.
  [[nodiscard]] bool may_leave_free() const { return !is_written; }
  /// True for state that no task uses until the step ends: it may stay far.
  [[nodiscard]] bool may_stay_far() const { return to_end; }
};

/// Returns the idle intervals of all movable blocks of a step in which every task runs once, in
/// order. State also has intervals from the step's start to its first use, and from its last use to
/// the end. `lives`: of that step; `before`: the seconds of all tasks before each task, and before
/// the end. Blocks may be discarded only if `may_recompute`. Complexity: O(accesses * log
/// accesses).
[[nodiscard]] std::vector<TimedInterval> find_timed_intervals(const TaskGraph& graph,
                                                              const BlockSizes& block_sizes,
                                                              std::span<const Life> lives,
                                                              std::span<const double> before,
                                                              bool may_recompute);

}  // namespace spillway::prefetch
