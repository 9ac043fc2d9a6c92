#include "prefetch/placed_step.h"

#include <algorithm>

#include "prefetch/check_placement.h"
#include "um/error.h"

namespace spillway::prefetch {
namespace {

// How many of `stays`, which are in order, begin before entry `first` of the queue.
std::size_t begun_before(std::span<const Stay> stays, bool is_prefetched, std::uint32_t first) {
  const auto is_before = [&](const Stay& stay) {
    return stay.is_prefetched != is_prefetched ? is_prefetched : stay.first < first;
  };
  return static_cast<std::size_t>(std::ranges::partition_point(stays, is_before) - stays.begin());
}

}  // namespace

PlacedStep::Range PlacedStep::begun_by_run(Position position) const {
  return {.begin = begun_before(stays, false, position),
          .end = begun_before(stays, false, position + 1)};
}

std::size_t PlacedStep::begun_by_prefetch(std::uint32_t index) const {
  return begun_before(stays, true, index);
}

PlacedStep place_step(const TaskGraph& graph, const Plan& plan, um::Bytes room) {
  PlacedStep step{.stays = find_stays(graph, plan)};
  step.placement = place_stays(plan, step.stays, room);
  step.fits = step.placement.extent <= room;
  const auto violation = check_placement(graph, plan, step.stays, step.placement);
  um::expects(!violation, "stays that may be at one time have places of their own");
  return step;
}

}  // namespace spillway::prefetch
