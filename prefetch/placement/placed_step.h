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

/// The fixed places of all movable memory in an arena during a step.
struct PlacedStep {
  std::vector<NearInterval> intervals;
  IntervalPlacement placement;
  bool fits = false;  ///< false: the places exceed the arena and are unusable

  /// The indices of near intervals that begin with run `position`. State that is always near begins
  /// with the first run.
  struct Range {
    std::size_t begin;
    std::size_t end;
  };
  [[nodiscard]] Range begun_by_run(Position position) const;
  /// Returns the index of the near interval that begins with prefetch `index` of the plan.
  [[nodiscard]] std::size_t begun_by_prefetch(std::uint32_t index) const;
  /// Returns the index of the near interval of a block of state that is near between steps.
  [[nodiscard]] std::size_t between_steps(DataId data) const;
  /// Returns the total size of these blocks.
  [[nodiscard]] um::Bytes size_between_steps() const;
};

/// Finds the near intervals of a step, tries to place them within `room`, and checks the result.
/// Requires: as find_near_intervals(). Complexity: as place_intervals() and check_placement().
[[nodiscard]] PlacedStep place_step(const TaskGraph& graph, const Plan& plan, um::Bytes room);

/// The arena of the copy mode under a plan. Blocks have fixed places if these fit; otherwise places
/// as blocks come, and compaction.
struct ArenaUse {
  um::Bytes extent;  ///< fixed places take
  um::Bytes room;    ///< the arena has: the budget without what is always near
  [[nodiscard]] bool fits() const { return extent <= room; }
};

/// Returns how a step uses the arena that its plan's budget leaves; nullopt if the copy mode cannot
/// run the plan, which pages on demand or moves parts of blocks. Requires: the plan verifies.
/// Complexity: as place_step().
[[nodiscard]] std::optional<ArenaUse> arena_use(const TaskGraph& graph, const Plan& plan);

/// Proves that no two concurrent `intervals` share addresses under any timing of `plan`, and that
/// all lie within the placement's extent. Otherwise returns the violation.
///
/// Shares no code with place_intervals(). For each end of a near interval, executes the rest of the
/// plan as if it never happened; intervals that begin nevertheless may be concurrent.
///
/// Requires: `plan` verifies; `intervals` belong to it. Complexity: O(runs + moves + n log n), n
/// near intervals.
[[nodiscard]] std::optional<Violation> check_placement(const TaskGraph& graph, const Plan& plan,
                                                       std::span<const NearInterval> intervals,
                                                       const IntervalPlacement& placement);

}  // namespace spillway::prefetch
