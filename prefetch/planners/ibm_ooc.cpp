#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "prefetch/moves/saved_blocks.h"
#include "prefetch/moves/swap_planner.h"
#include "prefetch/planners/strategies.h"

namespace spillway::prefetch {
namespace {

// Returns the swap of a block that the backward pass of `layers[use]` uses first. It returns after
// it has left: the previous layer may lie before the forward task that reads it last.
Swap one_layer_ahead(const FarInterval& block, std::span<const BackwardLayer> layers,
                     std::size_t use) {
  Swap swap{block, std::max(layers[use > 0 ? use - 1 : 0].begin, block.needed)};
  swap.written = swap.last;       // swapped out at the end of its layer
  swap.next = layers[use].begin;  // synchronous: the whole layer waits
  return swap;
}

std::vector<Swap> all_swaps(std::span<const FarInterval> saved,
                            std::span<const BackwardLayer> layers) {
  std::vector<Swap> swaps;
  for (const FarInterval& block : saved) {
    const auto after = std::ranges::upper_bound(layers, block.next, {}, &BackwardLayer::begin);
    const auto use = static_cast<std::size_t>(after - layers.begin()) - 1;
    swaps.push_back(one_layer_ahead(block, layers, use));
  }
  return swaps;
}

}  // namespace

std::variant<Plan, Infeasible> plan_ibm_ooc(const Problem& problem) {
  const SwapPlanner planner{problem};
  const auto saved = find_saved_blocks(problem.graph, planner.block_sizes(), planner.frugal());
  const auto layers = find_backward_layers(problem.graph, planner.frugal(), saved);
  std::vector<Swap> swaps = all_swaps(saved, layers);
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
