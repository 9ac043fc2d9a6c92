#include "prefetch/offload_plan.h"

#include <algorithm>
#include <utility>

#include "prefetch/cover.h"
#include "prefetch/far_home.h"
#include "prefetch/liveness.h"
#include "prefetch/schedule.h"
#include "prefetch/simulate.h"

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
      occupancy_{problem.graph, problem.page},
      options_{.chunk = problem.chunk, .whole_blocks = problem.whole_blocks, .far_home = {}} {
  if (std::ranges::any_of(problem.graph.data, &DataBlock::is_offloadable)) choose_far_home();
}

std::optional<EvaluatedPlan> OffloadPlanner::plan(std::vector<TaskRun> runs) const {
  LifeFinder finder{problem_.graph};
  return plan(std::move(runs), finder);
}

std::optional<EvaluatedPlan> OffloadPlanner::plan(std::vector<TaskRun> runs,
                                                  LifeFinder& finder) const {
  return plan(std::move(runs), options_, finder);
}

std::optional<EvaluatedPlan> OffloadPlanner::plan(std::vector<TaskRun> runs,
                                                  const CoverOptions& options,
                                                  LifeFinder& finder) const {
  if (occupancy_.always_near() > problem_.budget) return std::nullopt;
  const um::Bytes pool = occupancy_.pool(problem_.budget);
  const std::span<const Life> lives = finder.find(runs);
  const std::vector<um::Bytes> live = demand(problem_.graph, occupancy_, runs, lives);
  std::vector<Absence> absences = absences_from_start(occupancy_, lives, options);
  const auto chosen = cover(occupancy_, without(live, absences), lives, pool, options);
  if (!chosen) return std::nullopt;
  absences.insert(absences.end(), chosen->begin(), chosen->end());
  EvaluatedPlan result{.plan = empty_plan(problem_, std::move(runs))};
  add_moves(return_early(absences, live, pool), problem_.profile.link, result.plan);
  result.makespan = simulate(result.plan, problem_.profile).makespan();
  return result;
}

void OffloadPlanner::choose_far_home() {
  constexpr std::size_t kGrid = 8;
  const std::vector<TaskRun> runs = runs_in_order(problem_.graph);
  const std::vector<DataId> order = by_rest(occupancy_, find_lives(problem_.graph, runs));
  CoverOptions options = options_;
  options.far_home.resize(problem_.graph.data.size(), false);
  LifeFinder finder{problem_.graph};
  std::optional<EvaluatedPlan> best = plan(runs, options, finder);
  std::size_t next = 0;
  for (std::size_t i = 1; i <= kGrid; ++i) {
    for (; next < order.size() * i / kGrid; ++next) {
      options.far_home[static_cast<std::size_t>(order[next])] = true;
    }
    std::optional<EvaluatedPlan> now = plan(runs, options, finder);
    if (!now || (best && now->makespan >= best->makespan)) continue;
    best = std::move(now);
    options_ = options;
  }
}

}  // namespace spillway::prefetch
