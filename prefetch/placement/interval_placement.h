#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "prefetch/liveness.h"
#include "prefetch/placement/near_intervals.h"
#include "prefetch/plan.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// The place of each near interval of a step in an arena, computed before training.
struct IntervalPlacement {
  std::vector<um::Bytes> offsets;  ///< by near interval, multiples of kSmallestPage
  um::Bytes extent;                ///< the first `extent` bytes of the arena hold them all
};

/// Places the `intervals` of `plan`. Two share addresses only if one has ended before the other
/// begins under any timing.
///
/// This is dynamic storage allocation, which is NP-hard. Each near interval in turn gets the lowest
/// gap that is free throughout its time. Several orders are tried (by size and by breadth:
/// Pisarchyk & Lee, "Efficient Memory Management for Deep Neural Net Inference", section 5; by
/// length, by area, by beginning), until the extent is at most `room`. If none succeeds, the three
/// orders with the least excess bytes are varied: near intervals beyond the room, and others, move
/// to random places in the order; a variation is kept unless worse. The number of variations
/// depends only on the number of near intervals. Returns the smallest extent found, or the first
/// that is at most `room`. Deterministic.
///
/// Complexity: an order takes O(n^2 / 64) for n near intervals, at worst O(n^2) (IntervalPacker). 5
/// orders and at most 300 n, or 3.6e8 / n^2, variations are tried.
[[nodiscard]] IntervalPlacement place_intervals(const Plan& plan,
                                                std::span<const NearInterval> intervals,
                                                um::Bytes room);

/// The time of a near interval, as far as a plan's conditions determine it. If it spans steps, it
/// lasts from the beginning of a step until `ended`, and from `begun` to the step's end. If it is
/// always near, it never ends.
struct IntervalSpan {
  Progress begun;  ///< guaranteed progress when the near interval begins
  Progress ended;  ///< progress that guarantees that the near interval has ended
  /// Runs in [begin, end) may be concurrent with it.
  Position begin = 0;
  Position end = 0;
  bool spans_steps = false;
};

/// Returns the spans of `intervals`. `begun` includes transitive conditions: what the entries
/// waited for had waited for others. Moves of one direction begin in order, but may be in flight
/// together.
///
/// Requires: `plan` verifies; `intervals` belong to it. Complexity: O(runs + moves + near intervals
/// * log runs).
[[nodiscard]] std::vector<IntervalSpan> find_spans(const Plan& plan,
                                                   std::span<const NearInterval> intervals);

/// Places near intervals one by one in the lowest gap that is free throughout their time.
///
/// Placed intervals are stored in leaves by offset. A leaf knows whether any or all of its near
/// intervals may be concurrent with another one, and the width of its widest gap. Most leaves are
/// skipped as a whole, the others scanned by a branchless loop. The few intervals that span steps
/// are stored beside the leaves; an interval that shares their addresses must lie in the gap in
/// which they are away.
class IntervalPacker {
 public:
  /// Requires: `intervals` in the order of find_near_intervals(), with their `spans`.
  IntervalPacker(std::span<const NearInterval> intervals, std::span<const IntervalSpan> spans);

  /// Removes all placed intervals.
  void clear() {
    leaves_.clear();
    spanning_.clear();
  }
  /// Places the near interval `index` and returns its offset. Complexity: O(placed / 64), or
  /// O(placed) if leaves are partly concurrent with it.
  um::Bytes place(std::uint32_t index);

 private:
  // Near intervals begun by runs come first, in order, then those begun by prefetches, in order. In
  // each group, exactly those before some index may begin before a tenant has ended.
  struct Tenant {
    std::uint64_t size = 0;
    std::uint32_t run_begun_end = 0;
    std::uint32_t prefetch_begun_end = 0;
    bool spans_steps = false;
  };
  static constexpr std::uint32_t kNever = ~0U;
  // Placed near intervals, by offset.
  struct Leaf {
    std::vector<std::uint32_t> indices;
    std::vector<std::uint64_t> offsets;
    std::vector<std::uint64_t> ends;
    std::vector<std::uint32_t> run_begun_ends;
    std::vector<std::uint32_t> prefetch_begun_ends;
    // Over all of them:
    std::uint32_t first_run_begun = kNever;
    std::uint32_t last_run_begun = 0;  // one past it
    std::uint32_t first_prefetch_begun = kNever;
    std::uint32_t last_prefetch_begun = 0;  // one past it
    std::uint32_t min_run_begun_end = kNever;
    std::uint32_t max_run_begun_end = 0;
    std::uint32_t min_prefetch_begun_end = kNever;
    std::uint32_t max_prefetch_begun_end = 0;
    std::uint64_t widest_gap = 0;  // no gap is wider
    std::uint64_t end = 0;         // the largest
  };
  enum class Beside : std::uint8_t { kNone, kSome, kAll };

  [[nodiscard]] Beside beside(std::uint32_t index, const Leaf& leaf) const;
  // A placed interval that spans steps.
  struct Spanning {
    std::uint32_t index;
    std::uint64_t offset;
  };

  [[nodiscard]] std::uint64_t lowest_gap(std::uint32_t index) const;
  // Return the lowest gap from `offset` on among the leaves, for an interval that does not span
  // steps, and for one that does.
  [[nodiscard]] std::uint64_t gap_in_leaves(std::uint32_t index, std::uint64_t offset) const;
  [[nodiscard]] std::uint64_t gap_of_spanning(std::uint32_t index, std::uint64_t offset) const;
  // Returns `offset`, or the end of a step-spanning interval in the way.
  [[nodiscard]] std::uint64_t past_spanning(std::uint32_t index, std::uint64_t offset) const;
  [[nodiscard]] bool may_begin_before_end(std::uint32_t other, std::uint32_t index) const;
  // Advances `offset` past concurrent intervals of the leaf; returns true when a gap is found.
  [[nodiscard]] bool pass(std::uint32_t index, const Leaf& leaf, std::uint64_t& offset) const;
  void insert(std::uint32_t index, std::uint64_t offset);
  void insert_into(Leaf& leaf, std::uint32_t index, std::uint64_t offset) const;
  void count(Leaf& leaf, std::uint32_t index, std::uint64_t offset) const;
  void count_anew(Leaf& leaf) const;

  std::vector<Tenant> tenants_;
  std::uint32_t run_begun_ = 0;  // number of near intervals begun by runs
  std::vector<Leaf> leaves_;     // by offset, none empty
  std::vector<Spanning> spanning_;
};

}  // namespace spillway::prefetch
