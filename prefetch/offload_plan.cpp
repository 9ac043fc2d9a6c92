#include "prefetch/offload_plan.h"

#include <utility>

#include "prefetch/cover.h"
#include "prefetch/liveness.h"
#include "prefetch/occupancy.h"
#include "prefetch/schedule.h"
#include "prefetch/simulate.h"

namespace spillway::prefetch {

std::optional<EvaluatedPlan> plan_offloads(const Problem& problem, std::vector<TaskRun> runs) {
  const Occupancy occupancy{problem.graph, problem.page};
  if (occupancy.always_near() > problem.budget) return std::nullopt;
  const um::Bytes pool = occupancy.pool(problem.budget);
  const std::vector<Life> lives = find_lives(problem.graph, runs);
  const std::vector<um::Bytes> live = demand(problem.graph, occupancy, runs, lives);
  auto absences = cover(occupancy, live, lives, pool,
                        {.chunk = problem.chunk, .whole_blocks = problem.whole_blocks});
  if (!absences) return std::nullopt;
  EvaluatedPlan result{.plan = {.planner = {},
                                .graph = fingerprint(problem.graph),
                                .budget = problem.budget,
                                .page = problem.page,
                                .runs = std::move(runs)}};
  schedule_moves(*std::move(absences), live, pool, result.plan);
  result.makespan = simulate(result.plan, problem.profile).makespan();
  return result;
}

}  // namespace spillway::prefetch
