#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "prefetch/liveness.h"
#include "prefetch/moves/cover.h"
#include "prefetch/plan.h"
#include "prefetch/profile.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// Which move goes first if several could.
struct MoveOrder {
  /// An idle link takes the first offload that can begin, even if one that is needed sooner could
  /// begin before it ends.
  bool is_eager = false;
  /// On a link that is not duplex, prefetches go before offloads.
  bool prefetches_first = false;
  /// Each part of a block leaves as a separate move, at the cost of its latency. Its room is free
  /// before the next part has left, so an incoming block need not wait for the whole block.
  bool in_parts = false;
  friend bool operator==(const MoveOrder&, const MoveOrder&) = default;
};

/// The needs of the runs of a step, and the room for them.
struct NearDemand {
  std::span<const um::Bytes> runs;  ///< by run, see demand()
  um::Bytes at_end;                 ///< see demand_at_end()
  um::Bytes pool;
};

/// Adds the moves of `far_intervals` to a plan without moves, and gives `plan.runs` their
/// conditions. A virtual execution with the profile's times decides when moves begin:
/// - offloads as early as possible, in order of `needed` (add_offloads()). One that can begin goes
///   before others that cannot yet, if it does not delay them (MoveOrder::is_eager: even then) and
///   its room is free before theirs are counted on. On a link that is not duplex they go before
///   prefetches (MoveOrder::prefetches_first: after them);
/// - prefetches in order of `next`, each from the moment at which every run up to its use has room
///   for it. Blocks count as away if they have left by then, or if that run counts on them. A
///   prefetch thus follows the offload that makes its room, even during a run. Renewals return when
///   no other prefetch can begin.
///
/// Omits far intervals with room that is free all the time (needed_of()). `copies` are near with a
/// valid far copy when the step begins. Neighbouring parts of a block that move under the same
/// conditions become one move (except offloads by MoveOrder::in_parts). The resulting conditions
/// keep memory within the pool under any timing.
///
/// Requires: `far_intervals` cover `demand` down to its pool; renewals have `needed` and `next`
/// when the step ends; `plan.runs` is filled. Complexity: O((runs + far intervals) log (runs
/// + far intervals)), and the square of a block's number of far intervals.
void schedule_in_time(std::span<const FarInterval> far_intervals, const NearDemand& demand,
                      const Profile& profile, const MoveOrder& order, Plan& plan,
                      std::span<const FarInterval> copies = {});

/// Near memory in use at each run of a sequence: queries the maximum of a range of runs and changes
/// ranges in logarithmic time (a segment tree).
class Room {
 public:
  /// `near`: bytes in use during each run.
  explicit Room(std::span<const um::Bytes> near);

  /// Returns true when `size` more bytes keep each run in [begin, end) within `pool`.
  [[nodiscard]] bool has(um::Bytes size, um::Bytes pool, Position begin, Position end) const;

  /// Adds `size` bytes in use to the runs in [begin, end).
  void take(um::Bytes size, Position begin, Position end);
  /// Subtracts `size` bytes from the runs in [begin, end).
  void give(um::Bytes size, Position begin, Position end);

 private:
  using Signed = std::int64_t;
  struct Node {
    Signed most = 0;  // maximum of its runs, with `all`, without the parents' `all`
    Signed all = 0;   // in use during all its runs
  };
  struct Span {
    std::size_t node;
    Position begin;
    Position end;
  };
  void add(Signed size, Position begin, Position end, const Span& at);
  [[nodiscard]] bool is_within(Signed limit, Position begin, Position end, const Span& at) const;
  [[nodiscard]] Span whole() const { return {.node = 1, .begin = 0, .end = leaves_}; }

  Position leaves_ = 1;
  std::vector<Node> nodes_;  // a binary heap: the children of node i are 2 i and 2 i + 1
};

/// Returns the `far_intervals` that some run needs, in order of next use; without the others there
/// is room anyway. Keeps intervals that are wanted, start far or stay far. Requires: `room` is in
/// use without() all of them.
/// Complexity: O(far intervals * log(runs + far intervals)).
[[nodiscard]] std::vector<FarInterval> needed_of(std::span<const FarInterval> far_intervals,
                                                 um::Bytes pool, Room& room);

}  // namespace spillway::prefetch
