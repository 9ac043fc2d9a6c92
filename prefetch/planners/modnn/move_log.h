#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "prefetch/liveness.h"
#include "prefetch/plan.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// Moves of whole blocks in the order in which a planner's virtual execution issued them, from
/// which the conditions of a plan follow. In that execution memory never exceeded a pool; the plan
/// keeps the same pool under any timing.
class MoveLog {
 public:
  /// `block` leaves to make room for whatever is issued later: its copy may start when run `from`
  /// has ended, and its last use is run `last`, not before `from`.
  void offload(DataId block, um::Bytes size, Position from, Position last, bool is_clean);
  /// `block` comes back for run `next`, when all runs before `at` have ended. Returns its entry.
  std::size_t load(DataId block, um::Bytes size, Position at, Position next);
  /// Takes a load back; its block stays away.
  void cancel(std::size_t load) { entries_[load].is_cancelled = true; }

  /// Adds the moves to a plan without moves, and gives `plan.runs` their conditions:
  /// - an offload starts when run `from` has ended;
  /// - a prefetch waits for the runs before `at` and for all offloads that were issued before it;
  /// - a run waits for the prefetches of its operands, and for as many offloads as it needs so that
  ///   it fits whichever of the prefetches that may have started by then have started.
  ///
  /// Requires: `plan.runs` is filled, `demand` is its demand(), and after each issued load, and
  /// during each run with all moves issued before the next run, the execution kept within `pool`.
  /// Complexity: O(runs + moves + pairs of a run and a prefetch under way).
  void add_to(Plan& plan, std::span<const um::Bytes> demand, um::Bytes pool) const;

 private:
  struct Entry {
    Move move;
    bool is_load = false;
    bool is_cancelled = false;
    Position next = 0;  // of a load
  };
  std::vector<Entry> entries_;
};

}  // namespace spillway::prefetch
