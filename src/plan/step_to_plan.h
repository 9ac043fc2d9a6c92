#pragma once

#include "prefetch/planner.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway {

/// A step as it is planned, wherever it comes from: a network, or another framework's trace.
struct StepToPlan {
  const prefetch::TaskGraph& graph;
  um::Bytes page;           ///< in which its tensors move
  prefetch::NearNeed need;  ///< of the whole run that the step is a part of
  um::Bytes elsewhere;      ///< what the run's other steps take of its budget

  /// The budget of this step when the whole run has `run_budget`.
  [[nodiscard]] um::Bytes budget(um::Bytes run_budget) const {
    return um::saturating_difference(run_budget, elsewhere);
  }
};

}  // namespace spillway
