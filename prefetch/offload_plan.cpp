#include "prefetch/offload_plan.h"

#include <utility>

#include "prefetch/cover.h"
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
    : problem_{problem}, occupancy_{problem.graph, problem.page} {}

std::optional<EvaluatedPlan> OffloadPlanner::plan(std::vector<TaskRun> runs) const {
  if (occupancy_.always_near() > problem_.budget) return std::nullopt;
  const um::Bytes pool = occupancy_.pool(problem_.budget);
  const std::vector<Life> lives = find_lives(problem_.graph, runs);
  const std::vector<um::Bytes> live = demand(problem_.graph, occupancy_, runs, lives);
  const auto absences = cover(occupancy_, live, lives, pool,
                              {.chunk = problem_.chunk, .whole_blocks = problem_.whole_blocks});
  if (!absences) return std::nullopt;
  EvaluatedPlan result{.plan = empty_plan(problem_, std::move(runs))};
  add_moves(return_early(*absences, live, pool), problem_.profile.link, result.plan);
  result.makespan = simulate(result.plan, problem_.profile).makespan();
  return result;
}

}  // namespace spillway::prefetch
