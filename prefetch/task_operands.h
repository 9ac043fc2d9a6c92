#pragma once

#include "prefetch/task_graph.h"

namespace spillway::prefetch {

/// Calls `use` with each block that the task reads or writes; twice where it updates one in place.
template <class Use>
void for_each_operand(const Task& task, const Use& use) {
  for (const auto* const ids : {&task.reads, &task.writes, &task.updates_once}) {
    for (const DataId id : *ids) use(id);
  }
}

/// Calls `use` with each block that the task writes, running statistics included.
template <class Use>
void for_each_written(const Task& task, const Use& use) {
  for (const auto* const ids : {&task.writes, &task.updates_once}) {
    for (const DataId id : *ids) use(id);
  }
}

}  // namespace spillway::prefetch
