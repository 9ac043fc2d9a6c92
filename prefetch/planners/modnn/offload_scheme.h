#pragma once

#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "prefetch/liveness.h"
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

/// What it takes for a block to leave near memory.
struct Departure {
  um::Nanoseconds ready{0};  ///< its transfer cannot start before
  um::Nanoseconds duration{
      0};             ///< of its transfer; zero where a far copy is valid: it is just freed
  Position next = 0;  ///< the run that uses it next
};

/// The departure of a block; nothing when it must stay.
using FindDeparture = std::function<std::optional<Departure>(DataId)>;

/// Blocks at contiguous addresses that leave together, so that an allocation fits in their place.
struct OffloadScheme {
  um::Bytes offset;  ///< of the room they make
  um::Bytes size;    ///< of that room
  std::vector<DataId> blocks;
  um::Nanoseconds delay{0};     ///< from now until the last of them has left
  um::Nanoseconds transfer{0};  ///< of all of them
  /// The first run that uses one of them; far in the future where there is none.
  Position next = std::numeric_limits<Position>::max();
};

/// The clocks of moDNN's two streams.
struct StreamClocks {
  um::Nanoseconds now{0};        ///< Strm_C: when the next task could start
  um::Nanoseconds link_free{0};  ///< Strm_D: when the transfers scheduled so far have ended
};

/// moDNN's search for an offloading scheme (section IV-B1, Fig. 4): every segment in turn is the
/// first, and those after it are added until there is room for `size`; a block that must stay ends
/// the attempt. The scheme with the lowest delay wins. The paper is silent on ties, of which there
/// are many as most schemes delay nothing; here the one whose blocks are used next as late as
/// possible wins, then the shortest transfer, then the lowest address.
///
/// Complexity: O(segments * segments of a scheme).
[[nodiscard]] std::optional<OffloadScheme> find_scheme(std::span<const Segment> segments,
                                                       um::Bytes size, const StreamClocks& clocks,
                                                       const FindDeparture& departure);

}  // namespace spillway::prefetch
