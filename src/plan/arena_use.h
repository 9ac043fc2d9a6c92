#pragma once

#include <optional>

#include "prefetch/plan.h"
#include "prefetch/planner.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway {

/// How a step uses the copy mode's arena: with places fixed before training where they fit in it,
/// else with places given as blocks come, and compaction.
struct ArenaUse {
  um::Bytes extent;  ///< what fixed places take
  um::Bytes room;    ///< of the arena
  [[nodiscard]] bool fits() const { return extent <= room; }
};

/// How a step run under `plan` uses an arena as large as what the budget leaves beside what is
/// always near. Nothing where the copy mode cannot run it: it pages on demand, or moves parts of
/// blocks. Requires: the plan verifies. Complexity: as prefetch::place_step().
[[nodiscard]] std::optional<ArenaUse> arena_use(const prefetch::TaskGraph& graph,
                                                const prefetch::Plan& plan);

/// `plan`, or one in its place whose blocks have fixed places in the copy mode's arena: an arena
/// that is compacted holds up the step while it copies (GoogLeNet at batch 32 under half of its
/// need: 0.17 s of 1.34, and 0.37 s of 1.65 by `capacity`). The planner is asked again for what a
/// little less near memory would take, until the places fit into all of it. `plan` is kept where
/// that makes the predicted step slower by more than an eighth, or where several times do not help.
/// Requires: `plan` is the planner's for `problem`, and verifies. The result verifies.
/// Complexity: at most five times planning and prefetch::place_step().
[[nodiscard]] prefetch::Plan with_fixed_places(const prefetch::Planner& planner,
                                               const prefetch::Problem& problem,
                                               prefetch::Plan plan);

}  // namespace spillway
