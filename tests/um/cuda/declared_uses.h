#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "prefetch/liveness.h"
#include "prefetch/plan.h"
#include "prefetch/runtime/step_memory.h"
#include "prefetch/task_graph.h"
#include "um/hints.h"

namespace spillway::um {

/// Returns the reads and writes of the kernel of `run`, for RecordedGpu::launch(). `address_of`
/// returns the address of a block.
template <class AddressOf>
[[nodiscard]] std::vector<Use> declared_uses(const prefetch::TaskGraph& graph,
                                             const prefetch::TaskRun& run,
                                             const AddressOf& address_of,
                                             std::byte* workspace_address) {
  const prefetch::Task& task = graph[run.task];
  std::vector<Use> uses;
  for (const prefetch::DataId id : prefetch::operands(task)) {
    const bool writes = std::ranges::find(task.writes, id) != task.writes.end();
    uses.push_back({.range = {address_of(id), graph[id].size.count()},
                    .access = writes ? Access::kReadWrite : Access::kRead});
  }
  const Bytes workspace = task.algorithms[run.algorithm].workspace;
  if (workspace > Bytes{}) {
    uses.push_back({.range = {workspace_address, workspace.count()}, .access = Access::kReadWrite});
  }
  return uses;
}

/// Returns the same for the current run of `memory`.
[[nodiscard]] inline std::vector<Use> declared_uses(const prefetch::TaskGraph& graph,
                                                    const prefetch::TaskRun& run,
                                                    const prefetch::StepMemory& memory) {
  return declared_uses(
      graph, run, [&](prefetch::DataId id) { return memory.address(id); }, memory.workspace());
}

}  // namespace spillway::um
