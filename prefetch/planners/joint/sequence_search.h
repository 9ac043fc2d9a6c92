#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "prefetch/plan.h"
#include "prefetch/planner.h"
#include "prefetch/planners/joint/value_graph.h"

namespace spillway::prefetch {

/// The conditions under which a sequence of runs is judged.
struct SequenceGoal {
  /// Bytes of near memory for values and workspaces.
  std::int64_t pool = 0;
  /// Bytes a second at which what exceeds the pool leaves, and comes back. Zero: nothing moves, and
  /// all of a sequence must fit.
  double out = 0;
  double in = 0;
  bool may_recompute = false;
};

/// How long a search takes, independently of time, so that plans repeat.
struct SequenceLimits {
  std::size_t changes = 0;
  std::uint64_t seed = 0;  ///< of the random changes
};

/// Searches for a sequence of all tasks and some recomputations by simulated annealing, from the
/// graph's order. Changes shift runs within their windows, alone and in groups; insert a run for a
/// later reader, with runs for inputs that are missing; and remove runs. Without moves the excess
/// over the pool has a price, which follows the share of sequences that fit. With moves sequences
/// are compared by fluid makespans: runs wait for the link alone.
///
/// Returns the shortest sequence that fits, or that with the shortest fluid makespan; nullopt if
/// none fits. The same on every machine.
[[nodiscard]] std::optional<std::vector<TaskRun>> search_sequence(const ValueGraph& graph,
                                                                  const SequenceGoal& goal,
                                                                  const SequenceLimits& limits);

}  // namespace spillway::prefetch
