#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "prefetch/liveness.h"
#include "prefetch/placement/interval_placement.h"
#include "prefetch/placement/near_intervals.h"
#include "prefetch/plan.h"
#include "prefetch/task_graph.h"
#include "prefetch/verify/verify.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// Where everything movable lies while a step runs in an arena with fixed places.
struct PlacedStep {
  std::vector<NearInterval> intervals;
  IntervalPlacement placement;
  bool fits = false;  ///< the places lie in the room there is; else they are of no use

  /// The near intervals that begin with run `position`, as indices from first on. Those of state
  /// that is always near are with the first run's.
  struct Range {
    std::size_t begin;
    std::size_t end;
  };
  [[nodiscard]] Range begun_by_run(Position position) const;
  /// The near interval that begins with prefetch `index` of the plan, as an index.
  [[nodiscard]] std::size_t begun_by_prefetch(std::uint32_t index) const;
  /// The near interval of a block of state that is near between steps, as an index.
  [[nodiscard]] std::size_t between_steps(DataId data) const;
  /// The bytes of all such blocks.
  [[nodiscard]] um::Bytes size_between_steps() const;
};

/// Finds the near intervals of a step, places them within `room` if it can, and has that checked.
/// Requires: as find_near_intervals(). Complexity: as place_intervals() and check_placement().
[[nodiscard]] PlacedStep place_step(const TaskGraph& graph, const Plan& plan, um::Bytes room);

/// Proves that no two of `intervals` that may be at the same time share addresses, whatever the
/// timing of `plan`, and that all lie within the placement's extent; or says which do not.
///
/// Shares nothing with place_intervals(): for each end of a near interval it lets everything else
/// of the plan go on without it for ever; what begins nevertheless may be beside that near
/// interval.
///
/// Requires: `plan` verifies; `intervals` are its. Complexity: O(runs + moves + n log n), n near
/// intervals.
[[nodiscard]] std::optional<Violation> check_placement(const TaskGraph& graph, const Plan& plan,
                                                       std::span<const NearInterval> intervals,
                                                       const IntervalPlacement& placement);

}  // namespace spillway::prefetch
