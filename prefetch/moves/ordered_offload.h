#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "prefetch/liveness.h"
#include "prefetch/moves/cover.h"
#include "prefetch/moves/offload_plan.h"
#include "prefetch/moves/saved_blocks.h"
#include "prefetch/planner.h"

namespace spillway::prefetch {

/// The no-wait, ordered schedules of Beaumont et al. (sections 3.2 and 4) for one sequence of runs.
/// The chosen saved blocks go far as a whole. They leave in the order of their last forward use and
/// return in the order in which the backward pass reads them; on a chain, the first produced leaves
/// first and returns last. Each run waits only for the offloads that make its room; each prefetch
/// starts when every run from then on has room for it.
///
/// As in the paper, a block may be copied out while the last forward task still reads it, if the
/// link allows that (LinkProfile::copies_while_read). A chosen block stays if no run needs its
/// room: moving it could only cost time.
class OrderedOffload {
 public:
  /// `runs`: every task once, in order; `problem` must outlive this.
  OrderedOffload(const Problem& problem, std::vector<TaskRun> runs);

  /// Returns the blocks that may go far, in order of production.
  [[nodiscard]] const std::vector<IdleInterval>& saved() const { return saved_; }

  /// Returns the plan that offloads the saved blocks with a set flag; nullopt when some run does
  /// not fit. Requires: `chosen` has a flag for each saved block.
  [[nodiscard]] std::optional<EvaluatedPlan> plan(const std::vector<bool>& chosen) const;

  /// Returns `chosen` plus the fewest further blocks, in order of production, that make every run
  /// fit; nullopt when even all saved blocks do not make enough room.
  [[nodiscard]] std::optional<std::vector<bool>> extended(std::vector<bool> chosen) const;

  /// Returns the least budget for these runs with all saved blocks far, and the task that decides
  /// it.
  [[nodiscard]] Infeasible smallest_budget() const;

 private:
  [[nodiscard]] std::vector<FarInterval> far_intervals(const std::vector<bool>& chosen) const;
  [[nodiscard]] bool fits(const std::vector<bool>& chosen) const;
  [[nodiscard]] std::vector<um::Bytes> demand_without(const std::vector<bool>& chosen) const;

  const Problem& problem_;
  BlockSizes block_sizes_;
  um::Bytes pool_;
  std::vector<TaskRun> runs_;
  std::vector<um::Bytes> demand_;
  std::vector<IdleInterval> saved_;
};

/// Returns the answer of a planner that only offloads saved blocks when no plan fits: the least
/// budget with each task's first algorithm, which needs least.
[[nodiscard]] Infeasible infeasible_for_activations(const Problem& problem);

}  // namespace spillway::prefetch
