#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "prefetch/moves/saved_blocks.h"
#include "prefetch/moves/swap_planner.h"
#include "prefetch/planners/strategies.h"

namespace spillway::prefetch {

std::variant<Plan, Infeasible> plan_ibm_ooc(const Problem& problem) {
  const SwapPlanner planner{problem};
  const auto saved = find_saved_blocks(problem.graph, planner.block_sizes(), planner.frugal());
  const auto layers = find_backward_layers(problem.graph, planner.frugal(), saved);
  std::vector<Swap> swaps;
  for (const FarInterval& block : saved) {
    const auto after = std::ranges::upper_bound(layers, block.next, {}, &BackwardLayer::begin);
    const auto use =
        static_cast<std::size_t>(after - layers.begin()) - 1;  // the first that uses it
    // It returns after it has left: the previous layer may lie before the forward task that reads
    // it last.
    swaps.push_back({block, std::max(layers[use > 0 ? use - 1 : 0].begin, block.needed)});
    swaps.back().written = block.last;      // swapped out at the end of its layer
    swaps.back().next = layers[use].begin;  // synchronous: the whole layer waits
  }
  std::vector<TaskRun> runs = planner.fastest_beside(swaps);
  if (!planner.keeps_budget(runs, swaps)) return planner.infeasible(swaps);
  std::vector<Position> ends_of_next_layers;
  ends_of_next_layers.reserve(swaps.size());
  for (const Swap& swap : swaps) ends_of_next_layers.push_back(swap.last + 2);
  planner.leave_late(runs, ends_of_next_layers, swaps);
  Plan plan = *planner.plan(std::move(runs), std::move(swaps));
  return plan;
}

}  // namespace spillway::prefetch
