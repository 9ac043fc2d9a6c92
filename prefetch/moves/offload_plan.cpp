#include "prefetch/moves/offload_plan.h"

#include <algorithm>
#include <utility>

#include "prefetch/liveness.h"
#include "prefetch/moves/cover.h"
#include "prefetch/moves/far_between_steps.h"
#include "prefetch/simulate/simulate.h"

namespace spillway::prefetch {

Plan empty_plan(const Problem& problem, std::vector<TaskRun> runs) {
  return {.planner = {},
          .graph = problem.profile.graph,
          .budget = problem.budget,
          .page = problem.page,
          .runs = std::move(runs)};
}

OffloadPlanner::OffloadPlanner(const Problem& problem)
    : problem_{problem},
      block_sizes_{problem.graph, problem.page},
      options_{
          .chunk = problem.chunk, .whole_blocks = problem.whole_blocks, .far_between_steps = {}} {
  if (std::ranges::any_of(problem.graph.data, &DataBlock::is_offloadable))
    choose_far_between_steps();
}

std::optional<EvaluatedPlan> OffloadPlanner::plan(std::vector<TaskRun> runs) const {
  LifeFinder finder{problem_.graph};
  return plan(std::move(runs), finder);
}

std::optional<EvaluatedPlan> OffloadPlanner::plan(std::vector<TaskRun> runs,
                                                  LifeFinder& finder) const {
  return plan(std::move(runs), options_, finder);
}

std::optional<EvaluatedPlan> OffloadPlanner::plan(std::vector<TaskRun> runs, LifeFinder& finder,
                                                  const MoveDecisions& moves) const {
  if (moves == MoveDecisions{}) return plan(std::move(runs), options_, finder);
  CoverOptions options = options_;
  options.order = moves.order;
  options.whole_blocks = options.whole_blocks || moves.whole_blocks;
  options.preferences = moves.preferences;
  return plan(std::move(runs), options, finder, moves.move_order);
}

std::optional<EvaluatedPlan> OffloadPlanner::plan(std::vector<TaskRun> runs,
                                                  const CoverOptions& options, LifeFinder& finder,
                                                  const MoveOrder& order) const {
  if (block_sizes_.pinned() > problem_.budget) return std::nullopt;
  const um::Bytes pool = block_sizes_.pool(problem_.budget);
  const std::span<const Life> lives = finder.find(runs);
  const std::vector<um::Bytes> live = demand(problem_.graph, block_sizes_, runs, lives);
  std::vector<FarInterval> far_intervals = far_intervals_from_start(block_sizes_, lives, options);
  const auto chosen = cover(block_sizes_, without(live, far_intervals), lives, pool, options);
  if (!chosen) return std::nullopt;
  far_intervals.insert(far_intervals.end(), chosen->begin(), chosen->end());
  EvaluatedPlan result{.plan = empty_plan(problem_, std::move(runs))};
  schedule_in_time(far_intervals, live, pool, problem_.profile, order, result.plan);
  result.makespan = simulate(result.plan, problem_.profile).makespan();
  return result;
}

void OffloadPlanner::choose_far_between_steps() {
  constexpr std::size_t kGrid = 8;
  const std::vector<TaskRun> runs = runs_in_order(problem_.graph);
  const std::vector<DataId> order = by_idle_time(block_sizes_, find_lives(problem_.graph, runs));
  CoverOptions options = options_;
  options.far_between_steps.resize(problem_.graph.data.size(), false);
  LifeFinder finder{problem_.graph};
  std::optional<EvaluatedPlan> best = plan(runs, options, finder);
  std::size_t next = 0;
  for (std::size_t i = 1; i <= kGrid; ++i) {
    for (; next < order.size() * i / kGrid; ++next) {
      options.far_between_steps[static_cast<std::size_t>(order[next])] = true;
    }
    std::optional<EvaluatedPlan> now = plan(runs, options, finder);
    if (!now || (best && now->makespan >= best->makespan)) continue;
    best = std::move(now);
    options_ = options;
  }
}

}  // namespace spillway::prefetch
