#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "prefetch/plan.h"
#include "prefetch/planner.h"
#include "prefetch/profile.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// A block that can be dropped after its last forward use and recomputed before its first backward
/// use: every task that writes it is recomputable and reads the same values again.
struct Recomputable {
  DataId data{};
  um::Nanoseconds cost{0};  ///< of its tasks, with all inputs present
  um::Bytes size;           ///< in whole pages
};

/// Returns the droppable blocks of `graph` that the backward pass reads, or needs to recompute
/// others, cheapest per byte first. They can be dropped in any combination, each recomputed once or
/// for each use. Excludes blocks that some rerun, early or late, could not recompute: a required
/// task has not run yet, or reads a block that was written again. `runs` gives the algorithms.
/// Complexity: O(accesses * log accesses).
[[nodiscard]] std::vector<Recomputable> find_recomputable(const TaskGraph& graph,
                                                          const Profile& profile, um::Bytes page,
                                                          const std::vector<TaskRun>& runs);

/// How long a recomputed block stays.
enum class Reuse {
  kUntilLastUse,  ///< recomputed once (SuperNeurons section 3.4: speed-centric)
  kPerUse,        ///< recomputed for each backward task that needs it
  /// Dropped after the backward task that required it, unless that task reads it itself: then it
  /// stays (SuperNeurons section 3.4: memory-centric).
  kOnceRead
};

/// A block that is dropped, and the way it is recomputed.
struct Dropped {
  DataId data{};
  Reuse reuse = Reuse::kUntilLastUse;
};

/// Inserts recomputations into the steps of one graph, which must outlive it.
class RecomputationInserter {
 public:
  explicit RecomputationInserter(const TaskGraph& graph);

  /// Returns `runs` (every task once) with inserted recomputations of the blocks in `dropped`.
  /// Dropped inputs of a recomputation are recomputed first. Complexity: O(accesses).
  [[nodiscard]] std::vector<TaskRun> insert(const std::vector<TaskRun>& runs,
                                            std::span<const Dropped> dropped) const;
  /// As insert(); returns nullopt for more than `max` runs. A chain of n blocks that are all
  /// recomputed for each use takes n^2 / 2 runs.
  [[nodiscard]] std::optional<std::vector<TaskRun>> insert_within(
      std::size_t max, const std::vector<TaskRun>& runs, std::span<const Dropped> dropped) const;

 private:
  const TaskGraph& graph_;
  std::vector<std::vector<TaskId>> writers_;  // by block: the forward tasks that write it, in order
};

/// Returns the total need of a sequence of runs when nothing is moved, and the task that decides
/// it.
[[nodiscard]] Infeasible need_of(const Problem& problem, const std::vector<TaskRun>& runs);

/// Returns the plan that executes `runs` without moves. Each task gets its fastest algorithm with a
/// workspace that fits in the budget beside the live blocks at each of its runs (SuperNeurons
/// section 3.5: left-over memory); otherwise it keeps runs[i].algorithm. Requires: need_of(problem,
/// runs) is within the budget. Complexity: O(accesses + runs * algorithms).
[[nodiscard]] Plan plan_without_moves(const Problem& problem, std::vector<TaskRun> runs);

}  // namespace spillway::prefetch
