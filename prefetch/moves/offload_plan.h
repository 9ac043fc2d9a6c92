#pragma once

#include <optional>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/liveness.h"
#include "prefetch/moves/cover.h"
#include "prefetch/moves/timed_schedule.h"
#include "prefetch/plan.h"
#include "prefetch/planner.h"
#include "um/bandwidth.h"

namespace spillway::prefetch {

/// A plan and the length that simulate() gives it.
struct EvaluatedPlan {
  Plan plan;
  um::Nanoseconds makespan{0};
};

/// What is decided about the moves of a plan.
struct MoveDecisions {
  CoverOrder order = CoverOrder::kLongestUnused;
  bool whole_blocks = false;  ///< no block is cut, even where the problem allows it
  std::vector<MovePreference> preferences{};
  MoveOrder move_order{};
  friend bool operator==(const MoveDecisions&, const MoveDecisions&) = default;
};

/// Makes plans for one problem, which must outlive it, from sequences of runs.
///
/// Which offloadable state is far between steps is decided when it is made: of the blocks in order
/// of by_idle_time(), the best number of leading ones on a grid of 8, evaluated with every task
/// once. Thread safety: plan() may be called by several threads at once.
class OffloadPlanner {
 public:
  explicit OffloadPlanner(const Problem& problem);

  /// The plan that executes `runs` within the problem's budget by offloading alone: cover(), then
  /// schedule_in_time() and simulate(). Nothing when some run does not fit. The `after` of `runs`
  /// is not looked at.
  [[nodiscard]] std::optional<EvaluatedPlan> plan(std::vector<TaskRun> runs) const;
  /// The same for who plans thousands of sequences, with one finder of the problem's graph for each
  /// thread.
  [[nodiscard]] std::optional<EvaluatedPlan> plan(std::vector<TaskRun> runs,
                                                  LifeFinder& finder) const;
  /// The same, where `moves` says what leaves.
  [[nodiscard]] std::optional<EvaluatedPlan> plan(std::vector<TaskRun> runs, LifeFinder& finder,
                                                  const MoveDecisions& moves) const;

 private:
  [[nodiscard]] std::optional<EvaluatedPlan> plan(std::vector<TaskRun> runs,
                                                  const CoverOptions& options, LifeFinder& finder,
                                                  const MoveOrder& order = {}) const;
  void choose_far_between_steps();

  const Problem& problem_;
  BlockSizes block_sizes_;
  CoverOptions options_;
};

/// A plan with `runs` and everything but moves, for `problem`: the frame that planners fill.
[[nodiscard]] Plan empty_plan(const Problem& problem, std::vector<TaskRun> runs);

}  // namespace spillway::prefetch
