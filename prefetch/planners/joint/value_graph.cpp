#include "prefetch/planners/joint/value_graph.h"

#include <algorithm>

#include "prefetch/block_sizes.h"
#include "prefetch/liveness.h"
#include "prefetch/precedence.h"
#include "prefetch/profile.h"
#include "um/bytes.h"

namespace spillway::prefetch {
namespace {

// Returns by task whether it may run again at any time when its inputs hold what its first run
// read.
std::vector<bool> find_rerunnable(const TaskGraph& graph, const BlockSizes& block_sizes,
                                  std::size_t loads) {
  std::vector<std::uint32_t> writers(graph.data.size(), 0);
  for (const Task& task : graph.tasks) {
    for_each_written(task, [&](DataId id) { ++writers[static_cast<std::size_t>(id)]; });
  }
  std::vector<bool> may_rerun;
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
    const Task& task = graph.tasks[t];
    const auto is_own = [&](DataId id) {
      const DataBlock& block = graph[id];
      return block.kind == DataKind::kTensor && !block_sizes.host_of(graph, id) &&
             writers[static_cast<std::size_t>(id)] == 1 && std::ranges::count(task.reads, id) == 0;
    };
    may_rerun.push_back(t >= loads && task.is_recomputable && !task.writes.empty() &&
                        std::ranges::all_of(task.writes, is_own));
  }
  return may_rerun;
}

std::vector<std::uint32_t> numbers(std::span<const TaskId> tasks) {
  std::vector<std::uint32_t> result;
  for (const TaskId task : tasks) result.push_back(static_cast<std::uint32_t>(task));
  return result;
}

std::int64_t signed_bytes(um::Bytes size) { return static_cast<std::int64_t>(size.count()); }

}  // namespace

ValueGraph::ValueGraph(const Problem& problem, const std::vector<TaskRun>& runs)
    : outputs(runs.size()),
      first_value(runs.size() + 1),
      inputs(runs.size()),
      source_of(runs.size()),
      hazard_of(runs.size()),
      may_rerun(find_rerunnable(problem.graph, BlockSizes{problem.graph, problem.page},
                                count_loads(problem.graph))),
      loads(count_loads(problem.graph)) {
  const BlockSizes block_sizes{problem.graph, problem.page};
  pool = signed_bytes(block_sizes.pool(problem.budget));
  for (const TaskRun& run : runs) {
    algorithms.push_back(run.algorithm);
    seconds.push_back(um::seconds(problem.profile(run)));
    workspaces.push_back(signed_bytes(
        block_sizes.workspace_size(problem.graph[run.task].algorithms[run.algorithm].workspace)));
  }
  for (const Life& life : find_lives(problem.graph, runs)) {
    const std::int64_t bytes = signed_bytes(block_sizes.size(life.data));
    if (life.outlives_step()) pool -= bytes;
    if (life.outlives_step() || bytes == 0) continue;
    values.push_back({.producer = life.begin(), .bytes = bytes, .consumers = {}});
    for (const BlockAccess& access : life.accesses) {
      if (access.position != life.begin()) values.back().consumers.push_back(access.position);
    }
  }
  std::ranges::stable_sort(values, {}, &Value::producer);
  for (std::uint32_t v = 0; v < values.size(); ++v) {
    ++first_value[values[v].producer + 1];
    outputs[values[v].producer] += values[v].bytes;
    for (const std::uint32_t consumer : values[v].consumers) inputs[consumer].push_back(v);
  }
  for (std::size_t t = 0; t < count(); ++t) first_value[t + 1] += first_value[t];
  const Precedence precedence{problem.graph, problem.page};
  for (std::uint32_t t = 0; t < count(); ++t) {
    sources.push_back(numbers(precedence.sources(TaskId{t})));
    hazards.push_back(numbers(precedence.hazards(TaskId{t})));
    for (const std::uint32_t source : sources[t]) source_of[source].push_back(t);
    for (const std::uint32_t hazard : hazards[t]) hazard_of[hazard].push_back(t);
  }
}

bool ValueGraph::has_other_orders() const {
  for (auto t = static_cast<std::uint32_t>(loads); t + 1 < count(); ++t) {
    const bool follows =
        std::ranges::count(sources[t + 1], t) > 0 || std::ranges::count(hazards[t + 1], t) > 0;
    if (!follows) return true;
  }
  return false;
}

}  // namespace spillway::prefetch
