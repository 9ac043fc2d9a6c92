#pragma once

#include <optional>
#include <span>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/liveness.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// Pages of a block that are far between two of its uses, or between a use and the step's end.
struct FarInterval {
  DataId data{};
  um::Bytes offset;
  um::Bytes size;
  Position written = 0;  ///< the last run that wrote the block before it leaves
  Position last = 0;     ///< the last run that used it before it leaves
  Position next = 0;     ///< the run that uses it next
  Position needed = 0;   ///< the first run that counts on its room: last < needed < next
  /// State that was far already when the step began: nothing leaves; `last` and `needed` are 0.
  bool from_start = false;
  /// State that stays far when the step ends: nothing comes back; `next` is the number of runs, and
  /// so is `needed` where no run counts on the room.
  bool to_end = false;
  bool is_written = true;  ///< since the step began, so that a far copy from before is stale
};

/// `demand` less the absences, each from `needed` up to, and without, `next`.
[[nodiscard]] std::vector<um::Bytes> without(std::span<const um::Bytes> demand,
                                             std::span<const FarInterval> far_intervals);

/// How cover() may cut blocks.
struct CoverOptions {
  um::Bytes chunk;            ///< largest single absence; a multiple of the page
  bool whole_blocks = false;  ///< a block leaves whole or not at all
  /// By DataId: state that is far between steps, and may leave after its last use. May be empty.
  std::vector<bool> far_between_steps;
};

/// Chooses what is far so that no run needs more than `pool` bytes for movable blocks: at each run
/// in order, whatever is missing is taken from the blocks that are between two uses, the one used
/// longest ago first. In parts of blocks this is the fractional greedy, which is optimal for
/// offloading (Beaumont et al., section 4; facts on planning, section 3, COVER); with whole blocks
/// it is the capacity-based strategy of UM-Chainer, section 3.5.
///
/// State in `options.far_home` has left when the step ends; what it leaves to runs that need the
/// room counts like any other absence. How it came near is not looked at.
///
/// `demand` as from demand(). Nothing when some run does not fit. The result is in order of
/// `needed`. Complexity: O((runs + gaps) log gaps + absences).
[[nodiscard]] std::optional<std::vector<FarInterval>> cover(const BlockSizes& block_sizes,
                                                            std::span<const um::Bytes> demand,
                                                            std::span<const Life> lives,
                                                            um::Bytes pool,
                                                            const CoverOptions& options);

}  // namespace spillway::prefetch
