#pragma once

#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/liveness.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// How the two passes use a tensor that the forward pass makes.
struct ForwardLife {
  um::Bytes size;                   ///< in whole pages; zero when it is always near
  Position begin = 0;               ///< the run that begins it
  Position last_forward = 0;        ///< the last run of the forward pass that uses it
  Position last_forward_write = 0;  ///< the last run of the forward pass that writes it
  Position first_backward = 0;      ///< the first run after it that does; all runs when none
  Position last = 0;                ///< the last run that uses it
};

/// Those of `lives`, of a sequence of `runs` runs, that begin in the forward pass, in order.
[[nodiscard]] std::vector<ForwardLife> find_forward_lives(const BlockSizes& block_sizes,
                                                          Position forward_end, Position runs,
                                                          const std::vector<Life>& lives);

/// Where the forward pass can be cut into a chain (see linearise()): the ends of the pieces, the
/// last of which is `forward_end`.
/// Complexity: O(lives * log tasks + tasks).
[[nodiscard]] std::vector<Position> find_chain_cuts(const std::vector<ForwardLife>& lives,
                                                    Position forward_end);

}  // namespace spillway::prefetch
