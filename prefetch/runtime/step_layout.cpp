#include "prefetch/runtime/step_layout.h"

#include <algorithm>

#include "um/error.h"

namespace spillway::prefetch {
namespace {

um::Access access_of(const BlockAccess& access) {
  if (!access.writes) return um::Access::kRead;
  return access.reads ? um::Access::kReadWrite : um::Access::kWrite;
}

}  // namespace

StepLayout::StepLayout(const TaskGraph& task_graph, const Plan& step_plan)
    : graph{task_graph},
      plan{step_plan},
      block_sizes{task_graph, step_plan.page},
      runs(step_plan.runs.size()) {
  um::expects(std::ranges::none_of(graph.data, &DataBlock::is_offloadable),
              "state that leaves near memory can be planned, not run");
  const std::vector<Life> lives = find_lives(graph, plan.runs);
  placement = place(graph, block_sizes, plan.runs, lives);
  for (const Life& life : lives) {
    if (!block_sizes.is_movable(life.data)) continue;
    for (const BlockAccess& access : life.accesses) {
      runs[access.position].operands.push_back({.data = life.data, .access = access_of(access)});
    }
    runs[life.begin()].begins.push_back(life.data);
    runs[life.last()].ends.push_back(life.data);
  }
  for (Position p = 0; p < runs.size(); ++p) {
    const TaskRun& run = plan.runs[p];
    const um::Bytes workspace = graph[run.task].algorithms[run.algorithm].workspace;
    runs[p].workspace = block_sizes.workspace_size(workspace);
    runs[p].has_small_workspace = workspace > um::Bytes{} && runs[p].workspace == um::Bytes{};
  }
}

}  // namespace spillway::prefetch
