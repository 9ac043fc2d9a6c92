#pragma once

#include <optional>
#include <span>
#include <vector>

#include "prefetch/moves/schedule.h"
#include "prefetch/planner.h"

namespace spillway::prefetch {

/// Turns swaps of a fixed rule into plans for one problem, which must outlive it. The swaps are for
/// a step in which every task runs once, in order.
class SwapPlanner {
 public:
  explicit SwapPlanner(const Problem& problem);

  [[nodiscard]] const BlockSizes& block_sizes() const { return block_sizes_; }
  /// Returns every task once, in order, with its first algorithm, which has the least workspace.
  [[nodiscard]] const std::vector<TaskRun>& frugal() const { return frugal_; }
  /// Returns every task once, in order, with its fastest algorithm, regardless of workspace.
  [[nodiscard]] std::vector<TaskRun> fastest() const;
  /// Returns every task once, in order, with the fastest algorithm that has room for its workspace
  /// beside the near blocks under `swaps`; the first one if none fits.
  [[nodiscard]] std::vector<TaskRun> fastest_beside(std::span<const Swap> swaps) const;

  /// Returns the movable bytes near during each run while the blocks of `swaps` are away, with
  /// workspace.
  [[nodiscard]] std::vector<um::Bytes> near_during(std::span<const TaskRun> runs,
                                                   std::span<const Swap> swaps) const;

  /// Returns true when `runs` with `swaps` keep the problem's budget.
  [[nodiscard]] bool keeps_budget(std::span<const TaskRun> runs, std::span<const Swap> swaps) const;
  /// Returns the plan, without a name; nullopt when it would not keep the budget.
  [[nodiscard]] std::optional<Plan> plan(std::vector<TaskRun> runs, std::vector<Swap> swaps) const;
  /// As plan(), but moves each chosen block as well as its far interval allows. Runs wait for an
  /// offload only when memory requires it (leave_when_needed()), and prefetches start as early as
  /// there is room, in order of use (return_early()). Requires: as leave_when_needed(), except the
  /// budget; `back` is `next`.
  [[nodiscard]] std::optional<Plan> plan_eagerly(std::vector<TaskRun> runs,
                                                 std::vector<Swap> swaps) const;
  /// Returns the smallest budget for `swaps`, with the first algorithms.
  [[nodiscard]] Infeasible infeasible(std::span<const Swap> swaps) const;

  /// Delays `needed` of each swap as long as the budget is kept, at most to its limit, so that the
  /// offload overlaps more runs.
  /// Requires: the swaps keep the budget with `runs`; one limit for each.
  void leave_late(std::span<const TaskRun> runs, std::span<const Position> limits,
                  std::span<Swap> swaps) const;

  /// Sets `needed` of each swap to the first run that cannot do without its room; the block that
  /// leaves first is asked first. Runs then wait for an offload only when memory requires it.
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
