#pragma once

#include <variant>

#include "prefetch/plan.h"
#include "prefetch/planner.h"

namespace spillway::prefetch {

/// Plans a learned step by offloading: nothing can run again and there is one way to run each task,
/// so what is left of `joint` is the cover of Beaumont et al. (their section 4) with state that may
/// be far between cycles.
///
/// The cover alone takes no more away than it must, so near memory is always full and a block comes
/// only when another has gone: both transfers lie between two tasks. So some of the pool is kept
/// free of blocks that are merely idle, for those that come early: covers of pools smaller by
/// several parts are made, each scheduled in the whole pool, and the fastest is taken. (The paper's
/// model has no such choice: there a transfer of any part takes effect at once.)
///
/// Which state is far between cycles: of the blocks that are idle longest around the cycle's turn,
/// the best number of a grid, for each of these. Pure. Complexity: that of several dozen plans.
[[nodiscard]] std::variant<Plan, Infeasible> look_ahead_plan(const Problem& problem);

}  // namespace spillway::prefetch
