#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "prefetch/liveness.h"
#include "prefetch/planners/modnn/segment_list.h"
#include "um/bytes.h"

namespace spillway::prefetch {

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
