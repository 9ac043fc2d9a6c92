#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "prefetch/liveness.h"
#include "prefetch/moves/cover.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// Near memory in use at each run of a sequence: ranges of runs can be asked for the most, and
/// given more or less, in logarithmic time (a segment tree).
class Room {
 public:
  /// `near`: bytes in use during each run.
  explicit Room(std::span<const um::Bytes> near);

  /// True when `size` more bytes keep each run from `begin` up to, and without, `end` within
  /// `pool`.
  [[nodiscard]] bool has(um::Bytes size, um::Bytes pool, Position begin, Position end) const;

  /// So many more bytes are in use during the runs from `begin` up to, and without, `end`.
  void take(um::Bytes size, Position begin, Position end);
  /// So many fewer.
  void give(um::Bytes size, Position begin, Position end);

 private:
  using Signed = std::int64_t;
  struct Node {
    Signed most = 0;  // of its runs, with `all` and without what is in use above
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

/// Those of `far_intervals` that some run needs, in order of next use: with the others, which take
/// room, there would be room anyway. What is wanted, what starts far and what stays far is kept.
/// Requires: `room` is in use without() all of them.
/// Complexity: O(far intervals * log(runs + far intervals)).
[[nodiscard]] std::vector<FarInterval> needed_of(std::span<const FarInterval> far_intervals,
                                                 um::Bytes pool, Room& room);

}  // namespace spillway::prefetch
