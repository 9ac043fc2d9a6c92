#pragma once

#include <span>
#include <vector>

#include "prefetch/plan.h"
#include "prefetch/stays.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// Where each stay of a step lies in an arena, decided before training.
struct StayPlacement {
  std::vector<um::Bytes> offsets;  ///< by stay, multiples of kSmallestPage
  um::Bytes extent;                ///< the first `extent` bytes of the arena hold them all
};

/// Places `stays`, those of `plan`, so that two share addresses only if one has ended before the
/// other begins whatever the timing (StaySpan::precedes).
///
/// This is dynamic storage allocation, which is NP-hard; here: each stay in turn gets the lowest gap
/// that is free throughout its time, in several orders (by breadth and by size: Pisarchyk & Lee,
/// "Efficient Memory Management for Deep Neural Net Inference", sections 4.3, 5.1; by length, by
/// area, by beginning), until the extent is at most `room`. Where none does that, the best order is
/// improved: stays that reach beyond `room` move to the front (squeaky-wheel optimisation, Joslin &
/// Clements 1999), a number of times that depends on the number of stays alone. Gives the smallest
/// extent found, or the first that is at most `room`. Deterministic.
///
/// Complexity: O(n^2) for each order at worst, n stays; beyond 2000 stays fewer orders are tried so
/// that the whole stays about as dear as 100 orders of 2000.
[[nodiscard]] StayPlacement place_stays(const Plan& plan, std::span<const Stay> stays,
                                        um::Bytes room);

/// A step's stays and their places.
struct PlacedStep {
  std::vector<Stay> stays;
  StayPlacement placement;
};

/// find_stays(), then place_stays(). Requires: as find_stays().
[[nodiscard]] PlacedStep place_step(const TaskGraph& graph, const Plan& plan, um::Bytes room);

}  // namespace spillway::prefetch
