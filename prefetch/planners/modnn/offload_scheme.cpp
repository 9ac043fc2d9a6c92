#include "prefetch/planners/modnn/offload_scheme.h"

#include <algorithm>
#include <tuple>

namespace spillway::prefetch {
namespace {

using um::Bytes;
using um::Nanoseconds;

// A segment as the search sees it: what it takes to empty it.
struct Candidate {
  const Segment& segment;
  std::optional<Departure> departure;

  [[nodiscard]] bool must_stay() const { return segment.block && !departure; }
};

// The scheme that begins with the first of `candidates`; nothing when it does not reach `size`.
std::optional<OffloadScheme> scheme_from(std::span<const Candidate> candidates, Bytes size,
                                         const StreamClocks& clocks) {
  OffloadScheme scheme{.offset = candidates.front().segment.offset};
  Nanoseconds end = clocks.link_free;
  for (const Candidate& candidate : candidates) {
    if (candidate.must_stay()) return std::nullopt;
    scheme.size += candidate.segment.size;
    if (candidate.segment.block) {
      const Departure& departure = *candidate.departure;
      scheme.blocks.push_back(*candidate.segment.block);
      scheme.next = std::min(scheme.next, departure.next);
      scheme.transfer += departure.duration;
      if (departure.duration > Nanoseconds{0}) {
        end = std::max(end, departure.ready) + departure.duration;
        scheme.delay = std::max(scheme.delay, end - clocks.now);
      }
    }
    if (scheme.size >= size) return scheme;
  }
  return std::nullopt;
}

bool is_better(const OffloadScheme& a, const OffloadScheme& b) {
  return std::tuple{a.delay, b.next, a.transfer} < std::tuple{b.delay, a.next, b.transfer};
}

}  // namespace

std::optional<OffloadScheme> find_scheme(std::span<const Segment> segments, Bytes size,
                                         const StreamClocks& clocks,
                                         const FindDeparture& departure) {
  std::vector<Candidate> candidates;
  candidates.reserve(segments.size());
  for (const Segment& segment : segments) {
    candidates.push_back({.segment = segment,
                          .departure = segment.block ? departure(*segment.block) : std::nullopt});
  }
  std::optional<OffloadScheme> best;
  for (std::size_t first = 0; first < candidates.size(); ++first) {
    auto scheme = scheme_from(std::span{candidates}.subspan(first), size, clocks);
    if (scheme && (!best || is_better(*scheme, *best))) best = std::move(scheme);
  }
  return best;
}

}  // namespace spillway::prefetch
