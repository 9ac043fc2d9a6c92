#pragma once

#include <span>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/liveness.h"
#include "prefetch/task_graph.h"

namespace spillway::prefetch {

/// What a task reads that is needed by nobody later: whoever wants to run the task again keeps it,
/// moves it, or makes it again, too.
struct RecomputeInput {
  std::vector<Position> producers;  ///< the tasks that make it; empty: they may not run again
  Position last = 0;                ///< its last use
  double size = 0;                  ///< bytes, divided among the blocks that it is needed for
  double available = 0;             ///< when its content has been written, at the earliest
};

/// An idle interval of a block, with what a bound needs to know of it. All times are seconds, all
/// sizes bytes.
struct TimedInterval : IdleInterval {
  double size = 0;
  double available = 0;  ///< when its content has been written, at the earliest
  double due = 0;        ///< the time from its next use to the end, at least
  /// The tasks to run again if it was dropped: those that write it, from the one that overwrites it
  /// on. Empty: it may not be.
  std::vector<Position> producers;
  /// Of these tasks: what they read beside the block itself.
  std::vector<RecomputeInput> recompute_inputs;

  /// True when the block is idle during the run at `position`.
  [[nodiscard]] bool holds(Position position) const {
    return (from_start || last < position) && position < next;
  }
  /// State that no task has written since the step began: it may have a far copy from before.
  [[nodiscard]] bool may_leave_free() const { return !is_written; }
  /// State that no task uses until the step ends: it may stay far.
  [[nodiscard]] bool may_stay_far() const { return to_end; }
};

/// The idle intervals of all movable blocks of a step in which every task runs once, in order: of
/// state also those from the step's start to its first use, and from its last use to the end.
/// `lives`: of that step; `before`: by task, and for the end, the seconds of all tasks before it.
/// Only where `may_recompute` may anything be dropped.
/// Complexity: O(accesses * log accesses).
[[nodiscard]] std::vector<TimedInterval> find_timed_intervals(const TaskGraph& graph,
                                                              const BlockSizes& block_sizes,
                                                              std::span<const Life> lives,
                                                              std::span<const double> before,
                                                              bool may_recompute);

}  // namespace spillway::prefetch
