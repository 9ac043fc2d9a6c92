#pragma once

#include <algorithm>
#include <vector>

#include "prefetch/liveness.h"
#include "prefetch/plan.h"
#include "prefetch/runtime/step_memory.h"
#include "prefetch/task_graph.h"
#include "um/hints.h"

namespace spillway::um {

/// What the kernel of `run`, the current one of `memory`, reads and writes: for
/// RecordedGpu::launch().
[[nodiscard]] inline std::vector<Use> declared_uses(const prefetch::TaskGraph& graph,
                                                    const prefetch::TaskRun& run,
                                                    const prefetch::StepMemory& memory) {
  const prefetch::Task& task = graph[run.task];
  std::vector<Use> uses;
  for (const prefetch::DataId id : prefetch::operands(task)) {
    const bool writes = std::ranges::find(task.writes, id) != task.writes.end();
    uses.push_back({.range = {memory.address(id), graph[id].size.count()},
                    .access = writes ? Access::kReadWrite : Access::kRead});
  }
  const Bytes workspace = task.algorithms[run.algorithm].workspace;
  if (workspace > Bytes{}) {
    uses.push_back(
        {.range = {memory.workspace(), workspace.count()}, .access = Access::kReadWrite});
  }
  return uses;
}

}  // namespace spillway::um
