#pragma once

#include <span>
#include <vector>

#include "prefetch/placement/near_intervals.h"
#include "prefetch/plan.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// Where each near interval of a step lies in an arena, decided before training.
struct IntervalPlacement {
  std::vector<um::Bytes> offsets;  ///< by near interval, multiples of kSmallestPage
  um::Bytes extent;                ///< the first `extent` bytes of the arena hold them all
};

/// Places `intervals`, those of `plan`, so that two share addresses only if one has ended before
/// the other begins whatever the timing.
///
/// This is dynamic storage allocation, which is NP-hard; here: each near interval in turn gets the
/// lowest gap that is free throughout its time, in several orders (by size and by breadth:
/// Pisarchyk & Lee, "Efficient Memory Management for Deep Neural Net Inference", section 5; by
/// length, by area, by beginning), until the extent is at most `room`. Where none does that, the
/// three orders that exceed the room by the fewest bytes are varied: near intervals beyond the
/// room, and others, move to drawn places in the order, which is kept when it is no worse. How
/// often depends on the number of near intervals alone. Gives the smallest extent found, or the
/// first that is at most `room`. Deterministic.
///
/// Complexity: an order takes O(n^2 / 64), n near intervals, or at worst O(n^2) (IntervalPacker); 5
/// of them are tried, and at most 300 n, or 3.6e8 / n^2, variations.
[[nodiscard]] IntervalPlacement place_intervals(const Plan& plan,
                                                std::span<const NearInterval> intervals,
                                                um::Bytes room);

}  // namespace spillway::prefetch
