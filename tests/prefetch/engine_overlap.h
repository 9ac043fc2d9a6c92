#pragma once

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "prefetch/profile.h"
#include "prefetch/simulate/timeline.h"

namespace spillway::prefetch::testing {

/// The first two moves that are under way at one time on one engine, as a sentence, or "". A link
/// that is not duplex has one for both directions; runs have one, too.
inline std::string find_overlap(const Timeline& timeline, const LinkProfile& link) {
  const auto overlap = [](std::vector<Interval> intervals) {
    std::ranges::sort(intervals, {}, [](const Interval& i) { return std::tuple{i.begin, i.end}; });
    for (std::size_t i = 1; i < intervals.size(); ++i) {
      if (intervals[i].begin < intervals[i - 1].end) return true;
    }
    return false;
  };
  if (overlap(timeline.runs)) return "two runs overlap";
  if (overlap(timeline.offloads)) return "two offloads overlap";
  if (overlap(timeline.prefetches)) return "two prefetches overlap";
  std::vector<Interval> both = timeline.offloads;
  both.insert(both.end(), timeline.prefetches.begin(), timeline.prefetches.end());
  return !link.is_duplex && overlap(both) ? "an offload and a prefetch overlap" : "";
}

}  // namespace spillway::prefetch::testing
