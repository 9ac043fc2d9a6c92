#pragma once

#include <span>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/liveness.h"
#include "prefetch/moves/cover.h"
#include "prefetch/moves/schedule.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// The offloadable state among `lives`. What is idle longest between its last use in a step and its
/// first use in the next one comes first: it gains most from being far between steps.
[[nodiscard]] std::vector<DataId> by_idle_time(const BlockSizes& block_sizes,
                                               std::span<const Life> lives);

/// By block, what updates on the far side leave no choice about: their gradients and parameters are
/// far, whole.
[[nodiscard]] std::vector<HomeBytes> homes_for_far_updates(const TaskGraph& graph,
                                                           const BlockSizes& block_sizes);

/// The far intervals with which what is far by `options.homes` begins a step. Each lasts up to the
/// block's first use, and has at most `options.chunk` bytes unless whole blocks move.
[[nodiscard]] std::vector<FarInterval> far_intervals_from_start(const BlockSizes& block_sizes,
                                                                std::span<const Life> lives,
                                                                const CoverOptions& options);

/// What has a valid far copy as the step begins, and is near, by `options.homes`.
[[nodiscard]] std::vector<FarInterval> copies_from_start(std::span<const Life> lives,
                                                         const CoverOptions& options);

/// Swaps that leave the far copies of copies_from_start() valid for the next step, of those that
/// `far_intervals` count on and that are written: out after the last use, back before the step
/// ends. `before`: by run, and for the end, the time of all runs before it, by which a swap may
/// take `out`, bytes a second, and as much again.
[[nodiscard]] std::vector<Swap> renewals(std::span<const FarInterval> far_intervals,
                                         std::span<const Life> lives,
                                         std::span<const double> before, double out,
                                         const CoverOptions& options);

}  // namespace spillway::prefetch
