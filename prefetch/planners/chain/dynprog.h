#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "prefetch/planners/chain/chain.h"
#include "prefetch/profile.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// Which activations of a chain go far, and what that costs in the relaxed model.
struct ChainOffload {
  std::vector<bool> offloaded;  ///< by i: x_i, 0 <= i <= L; x_0 first
  double idle_seconds = 0;      ///< of the compute queue
};

/// How exact best_chain_offload() is.
struct ChainOffloadOptions {
  std::size_t entries = 2048;     ///< most states kept for each stage
  std::size_t grid_cells = 1024;  ///< the finest grid: near memory / grid_cells
};

/// Algorithm 1 of Beaumont et al. (section 5.3): the activations to offload, each wholly or not,
/// such that the no-wait, ordered schedule whose communications may be interrupted has the least
/// idle time. The recurrences are Eqs. 1-8, the idle time between the passes Eq. 9.
///
/// x_i is what stage i - 1 saves (for virtual layers: all of it), x_0 is Chain::input; x_{L+1} is
/// never offloaded. The two directions have their own bandwidths; a copy's latency is left out, as
/// in the paper. Where the paper's indices disagree with its section 3.1 that section holds: B_i
/// reads y_{i+1} and writes y_i, and needs ex^B_i (Eq. 6 has ex^F_i, R^B_j has y_{j-1}). Memory
/// in the condition of Algorithm 1 is without max(0, Delta), as in section 5.2.
///
/// Rounding: the paper leaves it to its research report; here memory, Delta_F and Delta_B are
/// exact, and of the states of one stage that fall into one cell of a grid the one with the least
/// idle time is kept (of equals the one that moves least). The grid starts at near memory /
/// `grid_cells` and doubles, stage by stage, until at most `entries` states are left: the number
/// of steps is fixed. Av, the time since the last transfer, is cut off at what memory can hold:
/// Eq. 9 sees no difference beyond.
///
/// Nothing when no state is left: no set of activations that the rounding kept makes every stage
/// fit in `memory`.
/// Complexity: O(stages * entries * log entries).
[[nodiscard]] std::optional<ChainOffload> best_chain_offload(
    const Chain& chain, um::Bytes memory, const LinkProfile& link,
    const ChainOffloadOptions& options = {});

}  // namespace spillway::prefetch
