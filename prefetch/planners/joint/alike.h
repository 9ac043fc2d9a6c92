#pragma once

#include <cstdint>
#include <vector>

#include "prefetch/moves/recomputation.h"
#include "prefetch/planner.h"
#include "prefetch/planners/joint/decisions.h"

namespace spillway::prefetch {

/// Blocks, or idle intervals, that are alike, by their indices in a DecisionSpace: as many networks
/// repeat their layers, what holds for one of them holds for all. Each group has at least two.
using Group = std::vector<std::uint32_t>;

/// Prices or times of one class differ by at most an eighth. Exact: the same on every machine.
[[nodiscard]] int magnitude(double value);

/// Droppable blocks of the same size that are made amid tasks which take about the same time, one
/// by one. In order of their first block.
[[nodiscard]] std::vector<Group> alike_blocks(const DecisionSpace& space, const Problem& problem);

/// Idle intervals of blocks of the same size that begin and end amid tasks which take about the
/// same time, one by one. In order of their first interval.
[[nodiscard]] std::vector<Group> alike_intervals(const DecisionSpace& space,
                                                 const Problem& problem);

}  // namespace spillway::prefetch
