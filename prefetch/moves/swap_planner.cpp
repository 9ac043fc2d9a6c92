#include "prefetch/moves/swap_planner.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "prefetch/liveness.h"
#include "prefetch/moves/algorithm_choice.h"
#include "prefetch/moves/offload_plan.h"
#include "um/error.h"

namespace spillway::prefetch {

using um::Bytes;

SwapPlanner::SwapPlanner(const Problem& problem)
    : problem_{problem},
      block_sizes_{problem.graph, problem.page},
      frugal_{runs_in_order(problem.graph)},
      lives_{find_lives(problem.graph, frugal_)} {}

std::vector<TaskRun> SwapPlanner::fastest() const {
  return fastest_runs(problem_.graph, problem_.profile);
}

std::vector<TaskRun> SwapPlanner::fastest_beside(std::span<const Swap> swaps) const {
  return prefetch::fastest_beside(problem_, block_sizes_, near_during(frugal_, swaps));
}

std::vector<Bytes> SwapPlanner::near_during(std::span<const TaskRun> runs,
                                            std::span<const Swap> swaps) const {
  return prefetch::near_during(swaps, demand(problem_.graph, block_sizes_, runs, lives_));
}

bool SwapPlanner::keeps_budget(std::span<const TaskRun> runs, std::span<const Swap> swaps) const {
  const Bytes pool = block_sizes_.pool(problem_.budget);
  return block_sizes_.pinned() <= problem_.budget &&
         fits(swaps, demand(problem_.graph, block_sizes_, runs, lives_), pool);
}

std::optional<Plan> SwapPlanner::plan(std::vector<TaskRun> runs, std::vector<Swap> swaps) const {
  if (!keeps_budget(runs, swaps)) return std::nullopt;
  Plan plan = empty_plan(problem_, std::move(runs));
  add_moves(std::move(swaps), problem_.profile.link, plan);
  return plan;
}

std::optional<Plan> SwapPlanner::plan_eagerly(std::vector<TaskRun> runs,
                                              std::vector<Swap> swaps) const {
  if (!keeps_budget(runs, swaps)) return std::nullopt;
  leave_when_needed(runs, swaps);
  const std::vector<FarInterval> far_intervals{swaps.begin(), swaps.end()};
  const std::vector<Bytes> live = demand(problem_.graph, block_sizes_, runs, lives_);
  const Bytes pool = block_sizes_.pool(problem_.budget);
  return plan(std::move(runs), return_early(far_intervals, live, pool));
}

Infeasible SwapPlanner::infeasible(std::span<const Swap> swaps) const {
  return need_max(block_sizes_, frugal_, near_during(frugal_, swaps));
}

void SwapPlanner::leave_late(std::span<const TaskRun> runs, std::span<const Position> limits,
                             std::span<Swap> swaps) const {
  um::expects(limits.size() == swaps.size(), "one limit for each swap");
  const Bytes pool = block_sizes_.pool(problem_.budget);
  std::vector<Bytes> near = near_during(runs, swaps);
  for (std::size_t i = 0; i < swaps.size(); ++i) {
    Swap& swap = swaps[i];
    const Position limit = std::min(limits[i], swap.back);
    while (swap.needed < limit && near[swap.needed] + swap.size <= pool) {
      near[swap.needed++] += swap.size;
    }
  }
}

void SwapPlanner::leave_when_needed(std::span<const TaskRun> runs, std::span<Swap> swaps) const {
  const Bytes pool = block_sizes_.pool(problem_.budget);
  const std::vector<Bytes> live = demand(problem_.graph, block_sizes_, runs, lives_);
  std::vector<Bytes> come_back(live.size() + 1);  // by run
  Bytes away;
  std::size_t oldest = 0;  // among those that may still stay
  for (Position p = 0; p < live.size(); ++p) {
    away -= come_back[p];
    while (live[p] > pool + away && oldest < swaps.size() && swaps[oldest].last < p) {
      Swap& swap = swaps[oldest++];
      swap.needed = std::min(p, swap.back);
      if (swap.back <= p) continue;
      away += swap.size;
      come_back[swap.back] += swap.size;
    }
  }
  for (Swap& swap : swaps.subspan(oldest)) swap.needed = swap.back;
}

}  // namespace spillway::prefetch
