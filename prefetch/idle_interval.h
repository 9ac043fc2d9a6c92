#pragma once

#include <span>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/liveness.h"
#include "prefetch/task_graph.h"

namespace spillway::prefetch {

/// A stretch in which no run uses a block that is needed later: between two of its uses, or, for
/// state, between a use and an end of the step. The block may be far meanwhile.
struct IdleInterval {
  DataId data{};
  Position begin = 0;    ///< the run that begins the block's life
  Position written = 0;  ///< the last run before it that writes the block; `begin` if none does
  Position last = 0;     ///< the last run before it that uses the block; `begin` if none does
  Position next = 0;     ///< the run that uses the block next
  /// The block was written since the step began, so a far copy from before is stale.
  bool is_written = true;
  /// State that no run has used since the step began; `last` is 0.
  bool from_start = false;
  /// State that no run uses until the step ends; `next` is the number of runs.
  bool to_end = false;

  /// True when the last use before it only reads the block.
  [[nodiscard]] bool follows_a_read() const { return !is_written || written < last; }
};

/// The idle intervals between two uses of each movable block, with at least one run in each.
/// In the order of `lives`, and for one life in order of time. Complexity: O(accesses).
[[nodiscard]] std::vector<IdleInterval> find_idle_intervals(const BlockSizes& block_sizes,
                                                            std::span<const Life> lives);

/// What lies between the last use before `turn` and the first use from `turn` on. It may hold no
/// run. Requires: the life has a use from `turn` on, or the caller sets `next`.
[[nodiscard]] IdleInterval idle_interval_at(const Life& life, Position turn);

}  // namespace spillway::prefetch
