#pragma once

#include <optional>
#include <span>
#include <vector>

#include "prefetch/moves/schedule.h"
#include "prefetch/planner.h"

namespace spillway::prefetch {

/// Turns the swaps of a fixed rule into plans of one problem, which must outlive it. The swaps are
/// of a step in which every task runs once, in order.
class SwapPlanner {
 public:
  explicit SwapPlanner(const Problem& problem);

  [[nodiscard]] const BlockSizes& block_sizes() const { return block_sizes_; }
  /// Every task once, in order, with its first algorithm: the one with the least workspace.
  [[nodiscard]] const std::vector<TaskRun>& frugal() const { return frugal_; }
  /// The same, each task with its fastest algorithm, whatever its workspace.
  [[nodiscard]] std::vector<TaskRun> fastest() const;
  /// The same, each task with the fastest algorithm whose workspace fits beside what is near when
  /// `swaps` are made; with the first one where none fits.
  [[nodiscard]] std::vector<TaskRun> fastest_beside(std::span<const Swap> swaps) const;

  /// Movable bytes near during each run while the blocks of `swaps` are away, workspace included.
  [[nodiscard]] std::vector<um::Bytes> near_during(std::span<const TaskRun> runs,
                                                   std::span<const Swap> swaps) const;

  /// True when `runs` with `swaps` keep the problem's budget.
  [[nodiscard]] bool keeps_budget(std::span<const TaskRun> runs, std::span<const Swap> swaps) const;
  /// The plan, not yet named; nothing when it would not keep the budget.
  [[nodiscard]] std::optional<Plan> plan(std::vector<TaskRun> runs, std::vector<Swap> swaps) const;
  /// The same where only the blocks of `swaps` are chosen, and each is moved as well as its far
  /// interval allows: no run waits for an offload before its memory makes it wait
  /// (leave_when_needed()), and prefetches start as early as there is room, in order of use
  /// (return_early()). Requires: as leave_when_needed(), but for the budget; `back` is `next`.
  [[nodiscard]] std::optional<Plan> plan_eagerly(std::vector<TaskRun> runs,
                                                 std::vector<Swap> swaps) const;
  /// The smallest budget that `swaps` can keep: with the first algorithms.
  [[nodiscard]] Infeasible infeasible(std::span<const Swap> swaps) const;

  /// Counts on the room of each block later, as long as the budget is kept, at most up to the run
  /// `limits` names for it: what an offload may overlap.
  /// Requires: the swaps keep the budget with `runs`; one limit for each.
  void leave_late(std::span<const TaskRun> runs, std::span<const Position> limits,
                  std::span<Swap> swaps) const;

  /// Counts on the room of each block only when a run cannot do without it, the block that leaves
  /// first being asked first: no run waits for an offload before its memory makes it wait.
  /// Requires: the swaps keep the budget with `runs` and are in order of `last`.
  /// Complexity: O(runs + the swaps' lengths).
  void leave_when_needed(std::span<const TaskRun> runs, std::span<Swap> swaps) const;

 private:
  const Problem& problem_;
  BlockSizes block_sizes_;
  std::vector<TaskRun> frugal_;
  std::vector<Life> lives_;
};

}  // namespace spillway::prefetch
