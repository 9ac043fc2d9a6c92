#pragma once

#include <span>
#include <vector>

#include "prefetch/liveness.h"
#include "prefetch/placement/near_intervals.h"
#include "prefetch/plan.h"

namespace spillway::prefetch {

/// When a near interval is, as far as the conditions of a plan say so. One that spans steps is from
/// the beginning of a step until `ended`, and from `begun` to its end; one that is always near
/// never ends.
struct IntervalSpan {
  Progress begun;  ///< has surely been reached when the near interval begins
  Progress ended;  ///< the near interval has surely ended when this has been reached
  /// The runs from `begin` up to, and without, `end` are those beside which it may be.
  Position begin = 0;
  Position end = 0;
  bool spans_steps = false;
};

/// The spans of `intervals`. What an entry of the plan waits for waited for something itself:
/// `begun` holds all of that. Moves of one direction begin in order, but may be under way together.
///
/// Requires: `plan` verifies; `intervals` are its. Complexity: O(runs + moves + near intervals *
/// log runs).
[[nodiscard]] std::vector<IntervalSpan> find_spans(const Plan& plan,
                                                   std::span<const NearInterval> intervals);

}  // namespace spillway::prefetch
