#include "prefetch/planners/joint/stalls.h"

#include <algorithm>
#include <map>
#include <utility>

namespace spillway::prefetch {
namespace {

using um::Nanoseconds;

// Adds the bytes of the moves that are under way at some time in `when`, and of those before them
// without a pause: what a queue was busy with when the stall came.
void add_moving(const std::vector<Move>& moves, const std::vector<Interval>& intervals,
                const Interval& when, std::map<DataId, um::Bytes>& bytes) {
  // Moves of one queue come one after another.
  const auto first = static_cast<std::size_t>(
      std::ranges::upper_bound(intervals, when.begin, {}, &Interval::end) - intervals.begin());
  std::size_t end = first;
  while (end < moves.size() && intervals[end].begin < when.end) ++end;
  if (end == first) return;
  std::size_t begin = first;
  while (begin > 0 && intervals[begin - 1].end >= intervals[begin].begin) --begin;
  for (std::size_t i = begin; i < end; ++i) bytes[moves[i].data] += moves[i].size;
}

}  // namespace

std::vector<Stall> longest_stalls(const Plan& plan, const Timeline& timeline, std::size_t count) {
  std::vector<Stall> stalls;
  Nanoseconds free{0};
  for (Position p = 0; p < plan.runs.size(); ++p) {
    if (timeline.runs[p].begin > free) {
      stalls.push_back({.before = p, .length = timeline.runs[p].begin - free, .moving = {}});
    }
    free = timeline.runs[p].end;
  }
  std::ranges::stable_sort(stalls, std::ranges::greater{}, &Stall::length);
  if (stalls.size() > count) stalls.resize(count);
  for (Stall& stall : stalls) {
    const Nanoseconds end = timeline.runs[stall.before].begin;
    const Interval when{.begin = end - stall.length, .end = end};
    std::map<DataId, um::Bytes> bytes;
    add_moving(plan.offloads, timeline.offloads, when, bytes);
    add_moving(plan.prefetches, timeline.prefetches, when, bytes);
    std::vector<std::pair<um::Bytes, DataId>> by_size;
    by_size.reserve(bytes.size());
    for (const auto& [data, size] : bytes) by_size.emplace_back(size, data);
    std::ranges::stable_sort(by_size, std::ranges::greater{}, &std::pair<um::Bytes, DataId>::first);
    for (const auto& [size, data] : by_size) stall.moving.push_back(data);
  }
  return stalls;
}

}  // namespace spillway::prefetch
