#pragma once

#include <span>
#include <vector>

#include "prefetch/placement/near_intervals.h"
#include "prefetch/plan.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// The place of each near interval of a step in an arena, computed before training.
struct IntervalPlacement {
  std::vector<um::Bytes> offsets;  ///< by near interval, multiples of kSmallestPage
  um::Bytes extent;                ///< the first `extent` bytes of the arena hold them all
};

/// Places the `intervals` of `plan`. Two share addresses only if one has ended before the other
/// begins under any timing.
///
/// This is dynamic storage allocation, which is NP-hard. Each near interval in turn gets the lowest
/// gap that is free throughout its time. Several orders are tried (by size and by breadth:
/// Pisarchyk & Lee, "Efficient Memory Management for Deep Neural Net Inference", section 5; by
/// length, by area, by beginning), until the extent is at most `room`. If none succeeds, the three
/// orders with the least excess bytes are varied: near intervals beyond the room, and others, move
/// to random places in the order; a variation is kept unless worse. The number of variations
/// depends only on the number of near intervals. Returns the smallest extent found, or the first
/// that is at most `room`. Deterministic.
///
/// Complexity: an order takes O(n^2 / 64) for n near intervals, at worst O(n^2) (IntervalPacker). 5
/// orders and at most 300 n, or 3.6e8 / n^2, variations are tried.
[[nodiscard]] IntervalPlacement place_intervals(const Plan& plan,
                                                std::span<const NearInterval> intervals,
                                                um::Bytes room);

}  // namespace spillway::prefetch
