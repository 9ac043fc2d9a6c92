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

/// A block that can be dropped after its last use in the forward pass and made again just before
/// its first use in the backward pass, because every task that writes it is recomputable and would
/// read the same values again.
struct Recomputable {
  DataId data{};
  um::Nanoseconds cost{0};  ///< of its tasks, their inputs present
  um::Bytes size;           ///< in whole pages
};

/// The droppable blocks of `graph` that the backward pass reads, or reads in order to make others
/// of them again, cheapest per byte first; they can be dropped in any combination, each made again
/// once or for each use. Left out is what a rerun, early or late, could not make again: a task that
/// it takes has not run yet, or reads a block that is written again before. `runs` gives the
/// algorithms.
/// Complexity: O(accesses * log accesses).
[[nodiscard]] std::vector<Recomputable> find_recomputable(const TaskGraph& graph,
                                                          const Profile& profile, um::Bytes page,
                                                          const std::vector<TaskRun>& runs);

/// How long a block stays that was made again.
enum class Reuse {
  kUntilLastUse,  ///< made again once (SuperNeurons section 3.4: speed-centric)
  kPerUse,        ///< made again for each backward task that needs it
  /// Leaves with the backward task that it was made again for, unless that task reads it itself:
  /// then it stays (SuperNeurons section 3.4: memory-centric).
  kOnceRead
};

/// A block that is dropped, and how it comes back.
struct Dropped {
  DataId data{};
  Reuse reuse = Reuse::kUntilLastUse;
};

/// Inserts recomputations into the steps of one graph, which must outlive it.
class RecomputationInserter {
 public:
  explicit RecomputationInserter(const TaskGraph& graph);

  /// The sequence `runs` (every task once) with the recomputations inserted that make the blocks in
  /// `dropped` again. What a recomputation reads and was dropped itself is recomputed first.
  /// Complexity: O(accesses).
  [[nodiscard]] std::vector<TaskRun> insert(const std::vector<TaskRun>& runs,
                                            std::span<const Dropped> dropped) const;
  /// The same; nothing where that has more than `max` runs. A chain of n blocks that are all made
  /// again for each use takes n^2 / 2.
  [[nodiscard]] std::optional<std::vector<TaskRun>> insert_within(
      std::size_t max, const std::vector<TaskRun>& runs, std::span<const Dropped> dropped) const;

 private:
  const TaskGraph& graph_;
  std::vector<std::vector<TaskId>> writers_;  // by block: the forward tasks that write it, in order
};

/// What a sequence of runs needs when nothing is moved, everything included, and the task that
/// decides it.
[[nodiscard]] Infeasible need_of(const Problem& problem, const std::vector<TaskRun>& runs);

/// The plan that executes `runs` and moves nothing. Each task gets its fastest algorithm among
/// those whose workspace fits in the budget beside what is live at each of its runs (SuperNeurons
/// section 3.5: left-over memory); runs[i].algorithm is what it has otherwise. Requires:
/// need_of(problem, runs) is within the budget. Complexity: O(accesses + runs * algorithms).
[[nodiscard]] Plan plan_without_moves(const Problem& problem, std::vector<TaskRun> runs);

}  // namespace spillway::prefetch
