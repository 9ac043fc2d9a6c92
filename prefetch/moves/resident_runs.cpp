#include "prefetch/moves/resident_runs.h"

#include <algorithm>
#include <utility>

#include "prefetch/block_sizes.h"
#include "prefetch/liveness.h"
#include "prefetch/moves/algorithm_choice.h"
#include "prefetch/moves/offload_plan.h"

namespace spillway::prefetch {
namespace {

using um::Bytes;

// Bytes that are left at each task, at the run of it where least is left, without its workspace.
std::vector<Bytes> find_room(const Problem& problem, const BlockSizes& block_sizes,
                             const std::vector<TaskRun>& runs) {
  const Bytes pool = block_sizes.pool(problem.budget);
  const std::vector<Bytes> live =
      demand(problem.graph, block_sizes, runs, find_lives(problem.graph, runs));
  std::vector<Bytes> room(problem.graph.tasks.size(), pool);
  for (Position p = 0; p < runs.size(); ++p) {
    const Task& task = problem.graph[runs[p].task];
    const Bytes workspace =
        block_sizes.workspace_size(task.algorithms[runs[p].algorithm].workspace);
    Bytes& min = room[static_cast<std::size_t>(runs[p].task)];
    min = std::min(min, um::saturating_difference(pool + workspace, live[p]));
  }
  return room;
}

}  // namespace

Infeasible need_of(const Problem& problem, const std::vector<TaskRun>& runs) {
  const BlockSizes block_sizes{problem.graph, problem.page};
  const std::vector<Bytes> live =
      demand(problem.graph, block_sizes, runs, find_lives(problem.graph, runs));
  return need_max(block_sizes, runs, live);
}

Plan plan_without_moves(const Problem& problem, std::vector<TaskRun> runs) {
  const BlockSizes block_sizes{problem.graph, problem.page};
  const std::vector<Bytes> room = find_room(problem, block_sizes, runs);
  for (Position p = 0; p < runs.size(); ++p) {
    TaskRun& run = runs[p];
    const Bytes min = room[static_cast<std::size_t>(run.task)];
    run.algorithm = fastest_within(problem, block_sizes, run.task, min);
    run.after = {.runs = p};
  }
  return empty_plan(problem, std::move(runs));
}

}  // namespace spillway::prefetch
