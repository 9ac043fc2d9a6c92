#include "prefetch/resident_runs.h"

#include <algorithm>
#include <utility>

#include "prefetch/liveness.h"
#include "prefetch/occupancy.h"
#include "prefetch/offload_plan.h"

namespace spillway::prefetch {
namespace {

using um::Bytes;

// Bytes that are left at each task, at the run of it where least is left, without its workspace.
std::vector<Bytes> find_room(const Problem& problem, const Occupancy& occupancy,
                             const std::vector<TaskRun>& runs) {
  const Bytes pool = occupancy.pool(problem.budget);
  const std::vector<Bytes> live =
      demand(problem.graph, occupancy, runs, find_lives(problem.graph, runs));
  std::vector<Bytes> room(problem.graph.tasks.size(), pool);
  for (Position p = 0; p < runs.size(); ++p) {
    const Task& task = problem.graph[runs[p].task];
    const Bytes workspace = occupancy.workspace_size(task.algorithms[runs[p].algorithm].workspace);
    Bytes& least = room[static_cast<std::size_t>(runs[p].task)];
    least = std::min(least, um::saturating_difference(pool + workspace, live[p]));
  }
  return room;
}

}  // namespace

Infeasible need_of(const Problem& problem, const std::vector<TaskRun>& runs) {
  const Occupancy occupancy{problem.graph, problem.page};
  const std::vector<Bytes> live =
      demand(problem.graph, occupancy, runs, find_lives(problem.graph, runs));
  const auto most = std::ranges::max_element(live);
  if (most == live.end()) return {.smallest_budget = occupancy.always_near()};
  return {.task = runs[static_cast<std::size_t>(most - live.begin())].task,
          .smallest_budget = occupancy.always_near() + *most};
}

Plan plan_without_moves(const Problem& problem, std::vector<TaskRun> runs) {
  const Occupancy occupancy{problem.graph, problem.page};
  const std::vector<Bytes> room = find_room(problem, occupancy, runs);
  for (Position p = 0; p < runs.size(); ++p) {
    TaskRun& run = runs[p];
    const Task& task = problem.graph[run.task];
    for (std::uint32_t a = 0; a < task.algorithms.size(); ++a) {
      const bool fits = occupancy.workspace_size(task.algorithms[a].workspace) <=
                        room[static_cast<std::size_t>(run.task)];
      if (fits && problem.profile(run.task, a) < problem.profile(run)) run.algorithm = a;
    }
    run.after = {.runs = p};
  }
  return empty_plan(problem, std::move(runs));
}

}  // namespace spillway::prefetch
