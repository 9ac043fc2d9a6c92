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

/// An edit away from some decisions, and the plan that it makes.
struct Attempt {
  CandidateEdit edit;
  std::size_t index = 0;  ///< among those that were evaluated together
  std::optional<EvaluatedPlan> result;
};

/// Those with the shortest plans first. Requires: each has one.
void sort_by_makespan(std::vector<Attempt>& attempts);

/// Judges edits by the simulated length of their plans, many at once, and counts how many it made.
/// The results and the count do not depend on the number of threads. `problem` and `space` must
/// outlive it.
class StepEvaluator {
 public:
  StepEvaluator(const Problem& problem, const DecisionSpace& space, int evaluations);

  /// How many plans may still be made; less than zero where the last ones were too many.
  [[nodiscard]] int left() const { return left_; }

  /// The plan of `decisions`. Nothing when some run does not fit.
  [[nodiscard]] std::optional<EvaluatedPlan> plan(const Decisions& decisions);

  /// Those of the edits away from `from` whose plans are shorter than `limit`, the best first.
  /// Where the runs alone take as long, no plan is made.
  [[nodiscard]] std::vector<Attempt> shorter(const Decisions& from, um::Nanoseconds limit,
                                             std::vector<CandidateEdit> edits);

  /// By droppable block: what its recomputation costs or would cost per byte beside those that
  /// `from` drops; where that takes too long, what it costs when its inputs are present.
  [[nodiscard]] std::vector<double> prices(const Decisions& from);

 private:
  [[nodiscard]] double compute_seconds(const Decisions& decisions) const;
  void count(std::size_t planned, std::size_t unplanned);

  const Problem& problem_;
  const DecisionSpace& space_;
  OffloadPlanner offload_;
  tbb::enumerable_thread_specific<LifeFinder> finders_;
  int left_;
  std::size_t unplanned_ = 0;  // sequences that were made and not counted yet
};

}  // namespace spillway::prefetch
