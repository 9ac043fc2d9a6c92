#include "prefetch/plan.h"

#include <algorithm>

namespace spillway::prefetch {

std::vector<TaskRun> runs_in_order(const TaskGraph& graph) {
  std::vector<TaskRun> runs;
  runs.reserve(graph.tasks.size());
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) runs.push_back({.task = TaskId(i)});
  return runs;
}

bool moves_whole_blocks(const Plan& plan, const TaskGraph& graph) {
  const auto is_whole = [&](const Move& move) {
    return move.offset == um::Bytes{} && move.size >= graph[move.data].size;
  };
  return std::ranges::all_of(plan.offloads, is_whole) &&
         std::ranges::all_of(plan.prefetches, is_whole);
}

}  // namespace spillway::prefetch
