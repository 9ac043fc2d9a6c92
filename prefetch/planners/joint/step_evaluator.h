#pragma once

#include <tbb/enumerable_thread_specific.h>

#include <cstddef>
#include <optional>
#include <vector>

#include "prefetch/liveness.h"
#include "prefetch/moves/offload_plan.h"
#include "prefetch/planner.h"
#include "prefetch/planners/joint/decisions.h"
#include "prefetch/planners/joint/neighbourhood.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// An edit of given decisions, and its plan.
struct Attempt {
  CandidateEdit edit;
  std::size_t index = 0;  ///< among those evaluated together
  std::optional<EvaluatedPlan> result;
};

/// Sorts the shortest plans first. Requires: each attempt has a plan.
void sort_by_makespan(std::vector<Attempt>& attempts);

/// Judges edits by the simulated length of their plans, many at once, and counts the plans. The
/// results and the count do not depend on the number of threads. `problem` and `space` must outlive
/// it.
class StepEvaluator {
 public:
  StepEvaluator(const Problem& problem, const DecisionSpace& space, int evaluations);

  /// Returns how many plans may still be made; negative if the last batch exceeded the limit.
  [[nodiscard]] int left() const { return left_; }

  /// Returns the plan of `decisions`; nullopt when some run does not fit.
  [[nodiscard]] std::optional<EvaluatedPlan> plan(const Decisions& decisions);

  /// Returns the edits of `from` with plans shorter than `limit`, the best first. Skips planning if
  /// the runs alone take as long.
  [[nodiscard]] std::vector<Attempt> shorter(const Decisions& from, um::Nanoseconds limit,
                                             std::vector<CandidateEdit> edits);

  /// Returns by droppable block the cost of its recomputation per byte beside the blocks that
  /// `from` drops; if that takes too long, the cost with all inputs present.
  [[nodiscard]] std::vector<double> prices(const Decisions& from);

 private:
  [[nodiscard]] double compute_seconds(const Decisions& decisions) const;
  void count(std::size_t planned, std::size_t unplanned);

  const Problem& problem_;
  const DecisionSpace& space_;
  OffloadPlanner offload_;
  tbb::enumerable_thread_specific<LifeFinder> finders_;
  int left_;
  std::size_t unplanned_ = 0;  // sequences made but not counted yet
};

}  // namespace spillway::prefetch
