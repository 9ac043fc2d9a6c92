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

/// The no-wait, ordered schedules of Beaumont et al. (sections 3.2 and 4) for one sequence of runs:
/// given which saved blocks go far, whole, they leave in the order in which the forward pass is
/// done with them and come back in the order in which the backward pass reads them (on a chain:
/// produced first leaves first and comes back last). Each run waits only for the offloads whose
/// room it needs; each prefetch starts when every run from then on has room for it.
///
/// As in the paper a block may be copied out while the last forward task still reads it, where the
/// link can do that (LinkProfile::copies_while_read). A chosen block whose room no run needs stays:
/// moving it could only cost time.
class OrderedOffload {
 public:
  /// `runs`: every task once, in order; `problem` must outlive this.
  OrderedOffload(const Problem& problem, std::vector<TaskRun> runs);

  /// What may go far, in order of production.
  [[nodiscard]] const std::vector<IdleInterval>& saved() const { return saved_; }

  /// The plan that offloads those saved blocks whose flag is set. Nothing when some run does not
  /// fit. Requires: `chosen` has a flag for each saved block.
  [[nodiscard]] std::optional<EvaluatedPlan> plan(const std::vector<bool>& chosen) const;

  /// `chosen` and as many further blocks, the first in order of production, as it takes for every
  /// run to fit. Nothing when not even all saved blocks make enough room.
  [[nodiscard]] std::optional<std::vector<bool>> extended(std::vector<bool> chosen) const;

  /// The least budget with which these runs fit, with all saved blocks far, and the task that
  /// decides it.
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

/// What a planner that lets saved blocks alone go far answers where nothing fits: the least budget
/// with each task's first algorithm, which needs least.
[[nodiscard]] Infeasible infeasible_for_activations(const Problem& problem);

}  // namespace spillway::prefetch
