#include "prefetch/stalls.h"

#include <algorithm>
#include <map>
#include <utility>

namespace spillway::prefetch {
namespace {

using um::Nanoseconds;

// Adds the bytes of the moves that are under way at some time between `begin` and `end`.
void add_moving(const std::vector<Move>& moves, const std::vector<Interval>& intervals,
                const Interval& when, std::map<DataId, um::Bytes>& bytes) {
  // Moves of one queue come one after another.
  auto i = static_cast<std::size_t>(
      std::ranges::upper_bound(intervals, when.begin, {}, &Interval::end) - intervals.begin());
  for (; i < moves.size() && intervals[i].begin < when.end; ++i) {
    bytes[moves[i].data] += moves[i].size;
  }
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
    for (const auto& [data, size] : bytes) by_size.emplace_back(size, data);
    std::ranges::stable_sort(by_size, std::ranges::greater{}, &std::pair<um::Bytes, DataId>::first);
    for (const auto& [size, data] : by_size) stall.moving.push_back(data);
  }
  return stalls;
}

}  // namespace spillway::prefetch
