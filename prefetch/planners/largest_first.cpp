#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "prefetch/moves/saved_blocks.h"
#include "prefetch/moves/swap_planner.h"
#include "prefetch/planners/strategies.h"

namespace spillway::prefetch {
namespace {

using um::Bytes;

// Returns the swaps of `all` that remain when the largest blocks that fit in `pool` beside `near`
// stay.
std::vector<Swap> without_the_largest(const std::vector<Swap>& all, std::vector<Bytes> near,
                                      Bytes pool) {
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [&](std::size_t i) { return all[i].size; });
  std::vector<bool> stays_near(all.size(), false);
  for (const std::size_t i : order) {
    const auto away = std::span{near}.subspan(all[i].needed, all[i].back - all[i].needed);
    const Bytes size = all[i].size;
    if (std::ranges::any_of(away, [&](Bytes bytes) { return bytes + size > pool; })) continue;
    for (Bytes& bytes : away) bytes += size;
    stays_near[i] = true;
  }
  std::vector<Swap> swaps;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!stays_near[i]) swaps.push_back(all[i]);
  }
  return swaps;
}

}  // namespace

std::variant<Plan, Infeasible> plan_largest_first(const Problem& problem) {
  const SwapPlanner planner{problem};
  const auto all =
      away_until_used(find_saved_blocks(problem.graph, planner.block_sizes(), planner.frugal()));
  std::vector<TaskRun> runs = planner.fastest_beside(all);
  if (!planner.keeps_budget(runs, all)) return planner.infeasible(all);
  const Bytes pool = planner.block_sizes().pool(problem.budget);
  std::vector<Swap> swaps = without_the_largest(all, planner.near_during(runs, all), pool);
  Plan plan = *planner.plan_eagerly(std::move(runs), std::move(swaps));
  return plan;
}

}  // namespace spillway::prefetch
