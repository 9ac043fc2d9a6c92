#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "prefetch/liveness.h"
#include "prefetch/placement/near_intervals.h"
#include "prefetch/plan.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// When a near interval is, as far as the conditions of a plan say so. One that spans steps is from
/// the beginning of a step until `ended`, and from `begun` to its end; one that is always near
/// never ends.
struct IntervalSpan {
  Progress begun;  ///< has surely been reached when the near interval begins
  Progress ended;  ///< the near interval has surely ended when this has been reached
  /// The runs from `begin` up to, and without, `end` are those beside which it may be.
  Position begin = 0;
  Position end = 0;
  bool spans_steps = false;
};

/// The spans of `intervals`. What an entry of the plan waits for waited for something itself:
/// `begun` holds all of that. Moves of one direction begin in order, but may be under way together.
///
/// Requires: `plan` verifies; `intervals` are its. Complexity: O(runs + moves + near intervals *
/// log runs).
[[nodiscard]] std::vector<IntervalSpan> find_spans(const Plan& plan,
                                                   std::span<const NearInterval> intervals);

/// Puts near intervals, one after the other, in the lowest gap that is free throughout their time.
///
/// What is placed lies in leaves of neighbouring offsets. A leaf knows whether any of its near
/// intervals, or all of them, may be beside another, and how wide its widest gap is: most leaves
/// are passed over as a whole, the others by a loop without branches. What spans steps, which is
/// little, lies beside the leaves; whatever shares its addresses must lie in the gap in which it is
/// away.
class IntervalPacker {
 public:
  /// Requires: `intervals` as find_near_intervals() orders them, `spans` theirs.
  IntervalPacker(std::span<const NearInterval> intervals, std::span<const IntervalSpan> spans);

  /// Forgets what was placed.
  void clear() {
    leaves_.clear();
    spanning_.clear();
  }
  /// Places a near interval, of that index, and gives its offset. Complexity: O(placed / 64), and
  /// where leaves are partly beside it O(placed).
  um::Bytes place(std::uint32_t index);

 private:
  // Near intervals that runs begin come first, in order, then those that prefetches begin, in
  // order. Of each kind all before some index may begin before a tenant has ended, no later one.
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
    // Of all of them:
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
  // One that spans steps, placed.
  struct Spanning {
    std::uint32_t index;
    std::uint64_t offset;
  };

  [[nodiscard]] std::uint64_t lowest_gap(std::uint32_t index) const;
  // From `offset` on, beside what lies in leaves: of one that does not span steps, and of one that
  // does.
  [[nodiscard]] std::uint64_t gap_in_leaves(std::uint32_t index, std::uint64_t offset) const;
  [[nodiscard]] std::uint64_t gap_of_spanning(std::uint32_t index, std::uint64_t offset) const;
  // `offset`, or behind what spans steps and is in the way there.
  [[nodiscard]] std::uint64_t past_spanning(std::uint32_t index, std::uint64_t offset) const;
  [[nodiscard]] bool may_begin_before_end(std::uint32_t other, std::uint32_t index) const;
  // Goes on from `offset` past those of the leaf that may be beside; true when a gap is found.
  [[nodiscard]] bool pass(std::uint32_t index, const Leaf& leaf, std::uint64_t& offset) const;
  void insert(std::uint32_t index, std::uint64_t offset);
  void insert_into(Leaf& leaf, std::uint32_t index, std::uint64_t offset) const;
  void count(Leaf& leaf, std::uint32_t index, std::uint64_t offset) const;
  void count_anew(Leaf& leaf) const;

  std::vector<Tenant> tenants_;
  std::uint32_t run_begun_ = 0;  // how many near intervals runs begin
  std::vector<Leaf> leaves_;     // by offset, none empty
  std::vector<Spanning> spanning_;
};

}  // namespace spillway::prefetch
