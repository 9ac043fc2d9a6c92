#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "prefetch/moves/cover.h"
#include "prefetch/plan.h"
#include "prefetch/profile.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// A far interval with its two moves: an offload and a prefetch.
struct Swap : FarInterval {
  Position back = 0;  ///< the prefetch may start when all runs before this one have ended
};

/// Brings the pages of each far interval back as early as memory allows, in order of next use: from
/// the first run on from which every run up to their use still fits in `pool`. A far interval whose
/// room turns out to be free all the time is left out. State that was far from the start is brought
/// back all the same; state that stays far is not.
///
/// Requires: `far_intervals` cover `demand` down to `pool`. The result is in order of next use.
/// Complexity: O(intervals * runs) at worst, O(intervals + runs) where little room is free.
[[nodiscard]] std::vector<Swap> return_early(std::span<const FarInterval> far_intervals,
                                             std::span<const um::Bytes> demand, um::Bytes pool);

/// Movable bytes near during each run while `swaps` are away: each block from `needed` up to, and
/// without, `back`.
[[nodiscard]] std::vector<um::Bytes> near_during(std::span<const Swap> swaps,
                                                 std::span<const um::Bytes> demand);

/// True when the runs with `demand` keep within `pool`: each block is away from `needed` up to, and
/// without, `back`.
[[nodiscard]] bool fits(std::span<const Swap> swaps, std::span<const um::Bytes> demand,
                        um::Bytes pool);

/// Instead of the place of an offload: a renewal is left out where an earlier offload has made the
/// copy, which is still valid.
constexpr std::uint32_t kLeftOut = ~0U;

/// Adds the offloads of `far_intervals` to a plan without moves, in order of `needed`, with the
/// conditions that add_moves() describes. Returns, for each, how many offloads have ended when its
/// own has, 0 where nothing leaves, or kLeftOut; `counted_on` by run, and after the last: how many
/// have ended when the room that the run counts on is there. `copies_from_start` have a valid far
/// copy as the step begins, and are near. Where `may_merge`, neighbouring parts of a block that
/// leave under the same conditions are one move.
[[nodiscard]] std::vector<std::uint32_t> add_offloads(
    std::span<const FarInterval> far_intervals, const LinkProfile& link,
    std::span<const FarInterval> copies_from_start, bool may_merge, Plan& plan,
    std::vector<std::uint32_t>& counted_on);

/// Adds the moves of `swaps` to a plan without moves, and gives `plan.runs` their conditions:
/// - an offload starts when run `last` has ended, or already when run `written` has where the link
///   copies while tasks read, and run `needed` waits for it; offloads go in order of `needed`. It
///   is clean where an earlier swap has made a far copy that is still valid;
/// - a prefetch waits for the runs before `back`, for its own offload, and for all offloads that
///   run `back` counts on; run `next` waits for it. Prefetches go in order of `back`, then `next`.
///
/// Neighbouring parts of a block that move under the same conditions become one move.
///
/// Where the swaps fit(), these conditions alone keep memory within the pool under any timing.
/// What was far from the start has no offload, what stays far no prefetch. `copies` have a valid
/// far copy as the step begins, and are near. What leaves for no run's sake leaves when it can.
/// Requires: written <= last < needed <= back <= next for each swap that has both; `plan.runs` is
/// filled.
/// Complexity: O(swaps * log swaps + runs), and the square of a block's number of swaps.
void add_moves(std::vector<Swap> swaps, const LinkProfile& link, Plan& plan,
               std::span<const FarInterval> copies = {});

}  // namespace spillway::prefetch
