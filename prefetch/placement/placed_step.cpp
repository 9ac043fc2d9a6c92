#include "prefetch/placement/placed_step.h"

#include <algorithm>

#include "prefetch/placement/check_placement.h"
#include "um/error.h"

namespace spillway::prefetch {
namespace {

// How many of `intervals`, which are in order, begin before entry `first` of the queue.
std::size_t begun_before(std::span<const NearInterval> intervals, bool is_prefetched,
                         std::uint32_t first) {
  const auto is_before = [&](const NearInterval& interval) {
    return interval.is_prefetched != is_prefetched ? is_prefetched : interval.first < first;
  };
  return static_cast<std::size_t>(std::ranges::partition_point(intervals, is_before) -
                                  intervals.begin());
}

}  // namespace

PlacedStep::Range PlacedStep::begun_by_run(Position position) const {
  return {.begin = begun_before(intervals, false, position),
          .end = begun_before(intervals, false, position + 1)};
}

std::size_t PlacedStep::begun_by_prefetch(std::uint32_t index) const {
  return begun_before(intervals, true, index);
}

std::size_t PlacedStep::between_steps(DataId data) const {
  const auto found = std::ranges::find_if(intervals, [&](const NearInterval& interval) {
    return interval.spans_steps && interval.data == data;
  });
  um::expects(found != intervals.end(), "state that is near between steps");
  return static_cast<std::size_t>(found - intervals.begin());
}

um::Bytes PlacedStep::size_between_steps() const {
  um::Bytes size;
  for (const NearInterval& interval : intervals) {
    if (interval.spans_steps) size += interval.size;
  }
  return size;
}

PlacedStep place_step(const TaskGraph& graph, const Plan& plan, um::Bytes room) {
  PlacedStep step{.intervals = find_near_intervals(graph, plan)};
  step.placement = place_intervals(plan, step.intervals, room);
  step.fits = step.placement.extent <= room;
  const auto violation = check_placement(graph, plan, step.intervals, step.placement);
  um::expects(!violation, "near intervals that may be at one time have places of their own");
  return step;
}

}  // namespace spillway::prefetch
