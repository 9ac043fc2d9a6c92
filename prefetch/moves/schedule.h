#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "prefetch/moves/cover.h"
#include "prefetch/plan.h"
#include "prefetch/profile.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// A far interval with its offload and its prefetch.
struct Swap : FarInterval {
  Position back = 0;  ///< the prefetch may start when all runs before this one have ended
};

/// Moves the return of each far interval as early as memory allows, in order of next use: to the
/// first run from which every run up to the use fits in `pool`. Omits far intervals with room that
/// is free all the time, except state that was far from the start. State that stays far does not
/// return.
///
/// Requires: `far_intervals` cover `demand` down to `pool`. The result is in order of next use.
/// Complexity: O(intervals * runs) at worst, O(intervals + runs) where little room is free.
[[nodiscard]] std::vector<Swap> return_early(std::span<const FarInterval> far_intervals,
                                             std::span<const um::Bytes> demand, um::Bytes pool);

/// Returns the movable bytes near during each run while each swap's block is away in [needed,
/// back).
[[nodiscard]] std::vector<um::Bytes> near_during(std::span<const Swap> swaps,
                                                 std::span<const um::Bytes> demand);

/// Returns true when the runs with `demand` keep within `pool` while each block is away in [needed,
/// back).
[[nodiscard]] bool fits(std::span<const Swap> swaps, std::span<const um::Bytes> demand,
                        um::Bytes pool);

/// Marks a renewal that is left out because an earlier offload has made a copy that is still valid.
constexpr std::uint32_t kLeftOut = ~0U;

/// Adds the offloads of `far_intervals` to a plan without moves, in order of `needed`, with the
/// conditions of add_moves(). Returns for each how many offloads have ended when its own has, 0
/// without an offload, or kLeftOut. `counted_on` receives by run, and for the end, how many have
/// ended when the run's room is free. `copies_from_start` are near with a valid far copy when the
/// step begins. With `may_merge`, neighbouring parts of a block that leave under the same
/// conditions are one move. If `returns` say by far interval how many runs have ended when its
/// prefetch may start, no offload before its own is of a block that tasks still read then.
[[nodiscard]] std::vector<std::uint32_t> add_offloads(
    std::span<const FarInterval> far_intervals, std::span<const Position> returns,
    const LinkProfile& link, std::span<const FarInterval> copies_from_start, bool may_merge,
    Plan& plan, std::vector<std::uint32_t>& counted_on);

/// Adds the moves of `swaps` to a plan without moves, and gives `plan.runs` their conditions:
/// - an offload starts when run `last` has ended (or run `written`, if the link copies while tasks
///   read), and run `needed` waits for it; offloads go in order of `needed`. It is clean if an
///   earlier swap has made a far copy that is still valid;
/// - a prefetch waits for the runs before `back`, for its own offload, and for all offloads that
///   run `back` counts on; run `next` waits for it. Prefetches go in order of `back`, then `next`.
///
/// Neighbouring parts of a block that move under the same conditions become one move.
///
/// If the swaps fit(), these conditions alone keep memory within the pool under any timing. State
/// that was far from the start has no offload; state that stays far has no prefetch. `copies` are
/// near with a valid far copy when the step begins. Offloads without a run that needs their room
/// start as soon as possible.
/// Requires: written <= last < needed <= back <= next for each swap with both moves; `plan.runs` is
/// filled.
/// Complexity: O(swaps * log swaps + runs), and the square of a block's number of swaps.
void add_moves(std::vector<Swap> swaps, const LinkProfile& link, Plan& plan,
               std::span<const FarInterval> copies = {});

/// Gives each run of a plan with moves the fewest conditions that keep it within `pool` under any
/// timing: the prefetches of its operands, and enough offloads for any set of prefetches that may
/// have started.
///
/// `demand` as from demand(); `landed[p]`: the number of prefetches that must have ended because
/// run p uses their blocks; `far`: bytes of state that are far when the step begins.
///
/// Requires: some execution keeps within `pool` that runs the runs and moves each in order, and
/// starts each move no earlier than its conditions allow.
/// Complexity: O((runs + moves) log moves).
void add_run_conditions(std::span<const um::Bytes> demand, um::Bytes pool, um::Bytes far,
                        std::span<const std::uint32_t> landed, Plan& plan);

}  // namespace spillway::prefetch
