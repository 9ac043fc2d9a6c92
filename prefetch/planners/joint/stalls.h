#pragma once

#include <vector>

#include "prefetch/liveness.h"
#include "prefetch/plan.h"
#include "prefetch/simulate/timeline.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// A time in which the compute queue waits for moves.
struct Stall {
  Position before = 0;  ///< the run that waits
  um::Nanoseconds length{0};
  /// Blocks on the way meanwhile, and those that the link was busy with up to then without a
  /// pause; those with most bytes first.
  std::vector<DataId> moving;
};

/// The stalls of `plan` when it runs as `timeline` says, the longest first, at most `count`.
/// Complexity: O(runs log runs + count * moves).
[[nodiscard]] std::vector<Stall> longest_stalls(const Plan& plan, const Timeline& timeline,
                                                std::size_t count);

}  // namespace spillway::prefetch
