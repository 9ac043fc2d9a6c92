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
  std::optional<DataId> block;  ///< nullopt when it is free
};

/// Near memory in moDNN's virtual execution (section III-B): an arena's linked list of segments,
/// each free or holding a block. Touches no memory.
class SegmentList {
 public:
  /// `size` and all allocations are multiples of `alignment`.
  SegmentList(um::Bytes size, um::Bytes alignment) : arena_{size, alignment} {}

  /// Gives `block` the smallest free segment of at least `size`. Returns false when there is none.
  [[nodiscard]] bool allocate(DataId block, um::Bytes size);
  /// Requires: contains(block).
  void free(DataId block);
  [[nodiscard]] bool contains(DataId block) const { return offsets_.contains(key(block)); }

  /// Returns all segments in address order, without gaps; free segments are never adjacent.
  /// Complexity: O(segments).
  [[nodiscard]] std::vector<Segment> segments() const;

 private:
  static std::uint32_t key(DataId block) { return static_cast<std::uint32_t>(block); }

  um::Arena arena_;
  std::map<std::uint64_t, Segment> occupied_;             // by offset
  std::unordered_map<std::uint32_t, um::Bytes> offsets_;  // by block
};

/// The cost of moving a block out of near memory.
struct Departure {
  um::Nanoseconds ready{0};  ///< earliest start of its transfer
  um::Nanoseconds duration{
      0};             ///< of its transfer; zero where a far copy is valid: it is just freed
  Position next = 0;  ///< the run that uses it next
};

/// Returns the departure of a block; nullopt when it must stay.
using FindDeparture = std::function<std::optional<Departure>(DataId)>;

/// Adjacent blocks that leave together to make room for an allocation.
struct OffloadScheme {
  um::Bytes offset;  ///< of the room
  um::Bytes size;    ///< of the room
  std::vector<DataId> blocks;
  um::Nanoseconds delay{0};     ///< until the last of them has left
  um::Nanoseconds transfer{0};  ///< of all of them
  /// The first run that uses one of them; the largest Position if there is none.
  Position next = std::numeric_limits<Position>::max();
};

/// The times of moDNN's two streams.
struct StreamClocks {
  um::Nanoseconds now{0};        ///< Strm_C: when the next task could start
  um::Nanoseconds link_free{0};  ///< Strm_D: when all scheduled transfers have ended
};

/// moDNN's search for an offloading scheme (section IV-B1, Fig. 4). Each segment in turn is the
/// first, and the following ones are added until there is room for `size`; a block that must stay
/// ends the attempt. The scheme with the lowest delay wins. The paper does not specify ties, which
/// are frequent since most schemes cause no delay. Here the scheme with the latest next use wins,
/// then the shortest transfer, then the lowest address.
///
/// Complexity: O(segments * segments of a scheme).
[[nodiscard]] std::optional<OffloadScheme> find_scheme(std::span<const Segment> segments,
                                                       um::Bytes size, const StreamClocks& clocks,
                                                       const FindDeparture& departure);

}  // namespace spillway::prefetch
