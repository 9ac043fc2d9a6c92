#pragma once

#include <cstdint>
#include <vector>

#include "prefetch/plan.h"
#include "prefetch/planner.h"
#include "prefetch/profile.h"
#include "prefetch/task_graph.h"

namespace spillway::prefetch {

/// A sequence of runs as a step of its own, in which every run is a task. What a task writes again
/// is another block. All that searches over the graph's order, and over recomputation from it, thus
/// begins with that sequence.
///
/// A task with several runs keeps only the algorithm of its first run. The problem must outlive it.
class UnrolledStep {
 public:
  /// Requires: check_dataflow() accepts `runs`.
  UnrolledStep(const Problem& problem, std::vector<TaskRun> runs);

  /// Returns the problem of planning that step; valid as long as this object.
  [[nodiscard]] Problem problem() const;

  /// Returns the plan of the given problem for a plan of problem(). May not verify if `unrolled`
  /// recomputes a task that has several runs in the sequence.
  [[nodiscard]] Plan rolled_up(const Plan& unrolled) const;

 private:
  void add_block_again(DataId id);
  void add_exchanges_of(const TaskGraph& given);

  const Problem& problem_;
  std::vector<TaskRun> runs_;
  TaskGraph graph_;
  Profile profile_;
  std::vector<DataId> origins_;            // by block of graph_: the block of the problem
  std::vector<std::uint32_t> algorithms_;  // by run: the algorithm that it keeps, or kEachAlgorithm
};

}  // namespace spillway::prefetch
