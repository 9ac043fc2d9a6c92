#include "prefetch/planners/largest_first.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "prefetch/saved_blocks.h"
#include "prefetch/trip_plan.h"

namespace spillway::prefetch {
namespace {

using um::Bytes;

// The trips of `all` that are left when the largest blocks stay that fit in `pool` beside `near`.
std::vector<RoundTrip> without_the_largest(const std::vector<RoundTrip>& all,
                                           std::vector<Bytes> near, Bytes pool) {
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [&](std::size_t i) { return all[i].absence.size; });
  std::vector<bool> stays(all.size(), false);
  for (const std::size_t i : order) {
    const auto gap =
        std::span{near}.subspan(all[i].absence.needed, all[i].back - all[i].absence.needed);
    const Bytes size = all[i].absence.size;
    if (std::ranges::any_of(gap, [&](Bytes bytes) { return bytes + size > pool; })) continue;
    for (Bytes& bytes : gap) bytes += size;
    stays[i] = true;
  }
  std::vector<RoundTrip> trips;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!stays[i]) trips.push_back(all[i]);
  }
  return trips;
}

}  // namespace

std::variant<Plan, Infeasible> LargestFirst::plan(const Problem& problem) const {
  const TripPlanner planner{problem};
  const auto all =
      away_until_used(find_saved_blocks(problem.graph, planner.occupancy(), planner.frugal()));
  std::vector<TaskRun> runs = planner.fastest_beside(all);
  if (!planner.keeps_budget(runs, all)) return planner.infeasible(all);
  const Bytes pool = planner.occupancy().pool(problem.budget);
  std::vector<RoundTrip> trips = without_the_largest(all, planner.near_during(runs, all), pool);
  Plan plan = *planner.plan_eagerly(std::move(runs), std::move(trips));
  plan.planner = name();
  return plan;
}

}  // namespace spillway::prefetch
