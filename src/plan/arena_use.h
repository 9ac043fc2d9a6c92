#pragma once

#include <optional>

#include "prefetch/plan.h"
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

}  // namespace spillway
