#pragma once

#include <span>

#include "prefetch/moves/cover.h"
#include "prefetch/plan.h"
#include "prefetch/profile.h"
#include "um/bandwidth.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// Which move goes first where several could.
struct MoveOrder {
  /// An idle link takes the first offload that can begin, even if one that is needed sooner could
  /// begin before it has ended.
  bool is_eager = false;
  /// On a link that is not duplex prefetches go before offloads.
  bool prefetches_first = false;
  /// Each part of a block leaves as a move of its own, at the cost of its latency: its room is free
  /// before the next part has left, and what comes in its place need not wait for the whole block.
  bool in_parts = false;
  friend bool operator==(const MoveOrder&, const MoveOrder&) = default;
};

/// What the runs of a step need, and what there is for it.
struct NearDemand {
  std::span<const um::Bytes> runs;  ///< by run, see demand()
  um::Bytes at_end;                 ///< see demand_at_end()
  um::Bytes pool;
};

/// Adds the moves of `far_intervals` to a plan without moves, and gives `plan.runs` their
/// conditions, as a virtual execution that takes the profile's times begins them:
/// - offloads as early as they can, in order of `needed` (add_offloads()), but one that can begin
///   goes before others that cannot yet, where it does not make them wait (MoveOrder::is_eager:
///   even then) and its room does not come later than they are counted on; on a link that is not
///   duplex they go before prefetches (MoveOrder::prefetches_first: after them);
/// - prefetches in order of `next`, each at the moment from which on every run up to its use has
///   room for it, counting as away what has left by then and what that run counts on. So a prefetch
///   follows the offload that makes its room, even while a run goes on. Renewals come back when no
///   other prefetch can begin.
///
/// A far interval whose room turns out to be free all the time is left out (needed_of()). `copies`
/// have a valid far copy as the step begins, and are near. Neighbouring parts of a block that move
/// under the same conditions become one move (but for offloads by MoveOrder::in_parts). The
/// conditions that come of it keep memory within the pool under any timing.
///
/// Requires: `far_intervals` cover `demand` down to its pool; renewals have `needed` and `next`
/// when the step ends; `plan.runs` is filled. Complexity: O((runs + far intervals) log (runs
/// + far intervals)), and the square of a block's number of far intervals.
void schedule_in_time(std::span<const FarInterval> far_intervals, const NearDemand& demand,
                      const Profile& profile, const MoveOrder& order, Plan& plan,
                      std::span<const FarInterval> copies = {});

}  // namespace spillway::prefetch
