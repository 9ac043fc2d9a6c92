#include "prefetch/planners/modnn/offload_scheme.h"

#include <algorithm>
#include <tuple>

#include "um/error.h"

namespace spillway::prefetch {

using um::Bytes;

bool SegmentList::allocate(DataId block, Bytes size) {
  um::expects(!contains(block), "a block has one place");
  const std::optional<Bytes> offset = arena_.allocate(size);
  if (!offset) return false;
  occupied_.emplace(offset->count(), Segment{.offset = *offset, .size = size, .block = block});
  offsets_.emplace(key(block), *offset);
  return true;
}

void SegmentList::free(DataId block) {
  const auto found = offsets_.find(key(block));
  um::expects(found != offsets_.end(), "only a block that has a place can leave it");
  arena_.free(found->second);
  occupied_.erase(found->second.count());
  offsets_.erase(found);
}

std::vector<Segment> SegmentList::segments() const {
  std::vector<Segment> all;
  Bytes end;
  const auto add_free = [&](Bytes up_to) {
    if (end < up_to) all.push_back({.offset = end, .size = up_to - end, .block = std::nullopt});
  };
  for (const auto& [offset, segment] : occupied_) {
    add_free(segment.offset);
    all.push_back(segment);
    end = segment.offset + segment.size;
  }
  add_free(arena_.size());
  return all;
}

namespace {

using um::Bytes;
using um::Nanoseconds;

// A segment in the search, with the cost of emptying it.
struct Candidate {
  const Segment& segment;
  std::optional<Departure> departure;

  [[nodiscard]] bool must_stay() const { return segment.block && !departure; }
};

// Returns the scheme that begins with the first of `candidates`; nullopt when it does not reach
// `size`.
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
