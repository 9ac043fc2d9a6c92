#pragma once

#include <optional>
#include <span>
#include <vector>

#include "prefetch/liveness.h"
#include "prefetch/occupancy.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// Pages of a block that are far between two of its uses.
struct Absence {
  DataId data{};
  um::Bytes offset;
  um::Bytes size;
  Position written = 0;  ///< the last run that wrote the block before it leaves
  Position last = 0;     ///< the last run that used it before it leaves
  Position next = 0;     ///< the run that uses it next
  Position needed = 0;   ///< the first run that counts on its room: last < needed < next
};

/// How cover() may cut blocks.
struct CoverOptions {
  um::Bytes chunk;            ///< largest single absence; a multiple of the page
  bool whole_blocks = false;  ///< a block leaves whole or not at all
};

/// Chooses what is far so that no run needs more than `pool` bytes for movable blocks: at each run
/// in order, whatever is missing is taken from the blocks that are between two uses, the one used
/// longest ago first. In parts of blocks this is the fractional greedy, which is optimal for
/// offloading (Beaumont et al., section 4; facts on planning, section 3, COVER); with whole blocks
/// it is the capacity-based strategy of UM-Chainer, section 3.5.
///
/// `demand` as from demand(). Nothing when some run does not fit. The result is in order of
/// `needed`. Complexity: O((runs + gaps) log gaps + absences).
[[nodiscard]] std::optional<std::vector<Absence>> cover(const Occupancy& occupancy,
                                                        std::span<const um::Bytes> demand,
                                                        std::span<const Life> lives, um::Bytes pool,
                                                        const CoverOptions& options);

}  // namespace spillway::prefetch
