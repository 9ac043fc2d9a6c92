#include "prefetch/moves/algorithm_choice.h"

#include <algorithm>
#include <utility>

#include "prefetch/block_sizes.h"
#include "prefetch/liveness.h"
#include "um/error.h"

namespace spillway::prefetch {
namespace {

using um::Bytes;

// Returns runs with another than the first algorithm that exceed the pool: their workspace costs
// moves. The one with the most workspace per nanosecond saved comes first.
std::vector<Position> suspects(const Problem& problem, const std::vector<TaskRun>& runs) {
  const BlockSizes block_sizes{problem.graph, problem.page};
  const std::vector<Bytes> live =
      demand(problem.graph, block_sizes, runs, find_lives(problem.graph, runs));
  const Bytes pool = block_sizes.pool(problem.budget);
  std::vector<Position> result;
  for (Position p = 0; p < runs.size(); ++p) {
    if (runs[p].algorithm != 0 && live[p] > pool) result.push_back(p);
  }
  const auto bytes_per_nanosecond_saved = [&](Position p) {
    const TaskRun& run = runs[p];
    const auto saved = problem.profile(run.task, 0) - problem.profile(run);
    const Bytes workspace = problem.graph[run.task].algorithms[run.algorithm].workspace;
    return static_cast<double>(workspace.count()) /
           static_cast<double>(std::max<std::int64_t>(1, saved.count()));
  };
  std::ranges::stable_sort(result, std::ranges::greater{}, bytes_per_nanosecond_saved);
  return result;
}

}  // namespace

std::uint32_t fastest_within(const Problem& problem, const BlockSizes& block_sizes, TaskId task,
                             Bytes room) {
  const std::vector<Algorithm>& algorithms = problem.graph[task].algorithms;
  std::uint32_t fastest = 0;
  for (std::uint32_t a = 1; a < algorithms.size(); ++a) {
    const bool fits = block_sizes.workspace_size(algorithms[a].workspace) <= room;
    if (fits && problem.profile(task, a) < problem.profile(task, fastest)) fastest = a;
  }
  return fastest;
}

std::vector<TaskRun> fastest_runs(const TaskGraph& graph, const Profile& profile) {
  std::vector<TaskRun> runs = runs_in_order(graph);
  for (TaskRun& run : runs) {
    const auto& durations = profile.durations[static_cast<std::size_t>(run.task)];
    run.algorithm =
        static_cast<std::uint32_t>(std::ranges::min_element(durations) - durations.begin());
  }
  return runs;
}

std::vector<TaskRun> fastest_beside(const Problem& problem, const BlockSizes& block_sizes,
                                    std::span<const Bytes> near) {
  const Bytes pool = block_sizes.pool(problem.budget);
  std::vector<TaskRun> runs = runs_in_order(problem.graph);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Bytes first =
        block_sizes.workspace_size(problem.graph[runs[i].task].algorithms[0].workspace);
    const Bytes room = um::saturating_difference(pool + first, near[i]);
    runs[i].algorithm = fastest_within(problem, block_sizes, runs[i].task, room);
  }
  return runs;
}

std::vector<TaskRun> fastest_that_fit(const Problem& problem) {
  const BlockSizes block_sizes{problem.graph, problem.page};
  return fastest_beside(problem, block_sizes,
                        working_sets(problem.graph, block_sizes, runs_in_order(problem.graph)));
}

std::optional<EvaluatedPlan> choose_algorithms(const Problem& problem, const Evaluate& evaluate,
                                               int evaluations) {
  um::expects(evaluations > 0, "one evaluation at least");
  const std::vector<TaskRun> fastest = fastest_that_fit(problem);
  const std::vector<Position> doubtful = suspects(problem, fastest);
  std::vector<TaskRun> runs = fastest;
  std::optional<EvaluatedPlan> best;
  const auto consider = [&](std::vector<TaskRun> other) {
    --evaluations;
    auto plan = evaluate(other);
    if (!plan || (best && plan->makespan >= best->makespan)) return;
    best = std::move(plan);
    runs = std::move(other);
  };
  consider(fastest);
  if (doubtful.empty() || evaluations == 0) return best;

  std::vector<TaskRun> frugal = fastest;
  for (const Position p : doubtful) frugal[p].algorithm = 0;
  consider(std::move(frugal));
  for (const Position p : doubtful) {
    if (evaluations == 0) break;
    std::vector<TaskRun> other = runs;
    other[p].algorithm = runs[p].algorithm == 0 ? fastest[p].algorithm : 0;
    consider(std::move(other));
  }
  return best;
}

}  // namespace spillway::prefetch
