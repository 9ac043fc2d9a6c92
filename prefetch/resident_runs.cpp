#include "prefetch/resident_runs.h"

#include <algorithm>
#include <utility>

#include "prefetch/algorithm_choice.h"
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
  return need_most(occupancy, runs, live);
}

Plan plan_without_moves(const Problem& problem, std::vector<TaskRun> runs) {
  const Occupancy occupancy{problem.graph, problem.page};
  const std::vector<Bytes> room = find_room(problem, occupancy, runs);
  for (Position p = 0; p < runs.size(); ++p) {
    TaskRun& run = runs[p];
    const Bytes least = room[static_cast<std::size_t>(run.task)];
    run.algorithm = fastest_within(problem, occupancy, run.task, least);
    run.after = {.runs = p};
  }
  return empty_plan(problem, std::move(runs));
}

}  // namespace spillway::prefetch
