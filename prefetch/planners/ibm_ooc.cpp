#include "prefetch/planners/ibm_ooc.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "prefetch/saved_blocks.h"
#include "prefetch/trip_plan.h"

namespace spillway::prefetch {
namespace {

// The trip of a block that the backward pass of `layers[use]` is the first to use.
RoundTrip one_layer_ahead(Absence absence, std::span<const BackwardLayer> layers, std::size_t use) {
  absence.written = absence.last;    // swapped out when its layer is concluded
  absence.next = layers[use].begin;  // synchronous: the whole layer waits
  const Position back = layers[use > 0 ? use - 1 : 0].begin;
  return {.absence = absence, .back = back};
}

std::vector<RoundTrip> all_trips(std::span<const SavedBlock> saved,
                                 std::span<const BackwardLayer> layers) {
  std::vector<RoundTrip> trips;
  for (const SavedBlock& block : saved) {
    const auto after = std::ranges::upper_bound(layers, block.gap.next, {}, &BackwardLayer::begin);
    const auto use = static_cast<std::size_t>(after - layers.begin()) - 1;
    trips.push_back(one_layer_ahead(block.gap, layers, use));
  }
  return trips;
}

}  // namespace

std::variant<Plan, Infeasible> IbmOoc::plan(const Problem& problem) const {
  const TripPlanner planner{problem};
  const auto saved = find_saved_blocks(problem.graph, planner.occupancy(), planner.frugal());
  const auto layers = find_backward_layers(problem.graph, planner.frugal(), saved);
  std::vector<RoundTrip> trips = all_trips(saved, layers);
  std::vector<TaskRun> runs = planner.fastest_beside(trips);
  if (!planner.keeps_budget(runs, trips)) return planner.infeasible(trips);
  std::vector<Position> ends_of_next_layers;
  ends_of_next_layers.reserve(trips.size());
  for (const RoundTrip& trip : trips) ends_of_next_layers.push_back(trip.absence.last + 2);
  planner.leave_late(runs, ends_of_next_layers, trips);
  Plan plan = *planner.plan(std::move(runs), std::move(trips));
  plan.planner = name();
  return plan;
}

}  // namespace spillway::prefetch
