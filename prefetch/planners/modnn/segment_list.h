#pragma once

#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "prefetch/task_graph.h"
#include "um/arena.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// A stretch of near memory: a block, or free.
struct Segment {
  um::Bytes offset;
  um::Bytes size;
  std::optional<DataId> block;  ///< nothing when it is free
};

/// Near memory as moDNN's virtual execution sees it (section III-B): an arena's linked list of
/// segments, each of which is free or holds a block. Touches no memory.
class SegmentList {
 public:
  /// `size` and all allocations are multiples of `alignment`.
  SegmentList(um::Bytes size, um::Bytes alignment) : arena_{size, alignment} {}

  /// Gives `block` the smallest free segment of at least `size`. False when there is none.
  [[nodiscard]] bool allocate(DataId block, um::Bytes size);
  /// Requires: contains(block).
  void free(DataId block);
  [[nodiscard]] bool contains(DataId block) const { return offsets_.contains(key(block)); }

  /// All of it in address order, without gaps; no two free segments touch.
  /// Complexity: O(segments).
  [[nodiscard]] std::vector<Segment> segments() const;

 private:
  static std::uint32_t key(DataId block) { return static_cast<std::uint32_t>(block); }

  um::Arena arena_;
  std::map<std::uint64_t, Segment> occupied_;             // by offset
  std::unordered_map<std::uint32_t, um::Bytes> offsets_;  // by block
};

}  // namespace spillway::prefetch
