#pragma once

#include <span>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/liveness.h"
#include "prefetch/moves/cover.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// The offloadable state among `lives`. What is idle longest between its last use in a step and its
/// first use in the next one comes first: it gains most from being far between steps.
[[nodiscard]] std::vector<DataId> by_idle_time(const BlockSizes& block_sizes,
                                               std::span<const Life> lives);

/// The far intervals with which the state in `options.far_between_steps` begins a step. Each lasts
/// up to the block's first use, and has at most `options.chunk` bytes unless whole blocks move.
[[nodiscard]] std::vector<FarInterval> far_intervals_from_start(const BlockSizes& block_sizes,
                                                                std::span<const Life> lives,
                                                                const CoverOptions& options);

}  // namespace spillway::prefetch
