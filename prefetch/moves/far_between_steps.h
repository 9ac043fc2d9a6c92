#pragma once

#include <span>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/liveness.h"
#include "prefetch/moves/cover.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// The offloadable state among `lives`, what rests longest between its last use in a step and its
/// first in the next one first: that far is the best place between steps for.
[[nodiscard]] std::vector<DataId> by_rest(const BlockSizes& block_sizes,
                                          std::span<const Life> lives);

/// The absences, whole blocks in parts of `options.chunk`, with which the state in
/// `options.far_home` begins a step: up to its first use.
[[nodiscard]] std::vector<FarInterval> far_intervals_from_start(const BlockSizes& block_sizes,
                                                                std::span<const Life> lives,
                                                                const CoverOptions& options);

}  // namespace spillway::prefetch
