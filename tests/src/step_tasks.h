#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "src/program/step.h"

namespace spillway::test {

/// The task of this name, or null.
[[nodiscard]] inline const prefetch::Task* find_task(const Step& step, const std::string& name) {
  const auto found = std::ranges::find(step.graph.tasks, name, &prefetch::Task::name);
  return found == step.graph.tasks.end() ? nullptr : &*found;
}

/// The block of this name, or null.
[[nodiscard]] inline const prefetch::DataBlock* find_block(const Step& step,
                                                           const std::string& name) {
  const auto found = std::ranges::find(step.graph.data, name, &prefetch::DataBlock::name);
  return found == step.graph.data.end() ? nullptr : &*found;
}

/// The names of all tasks, in order.
[[nodiscard]] inline std::vector<std::string> task_names(const Step& step) {
  std::vector<std::string> names;
  for (const prefetch::Task& task : step.graph.tasks) names.push_back(task.name);
  return names;
}

/// The names of these blocks, in order.
[[nodiscard]] inline std::vector<std::string> block_names(
    const Step& step, const std::vector<prefetch::DataId>& ids) {
  std::vector<std::string> names;
  for (const prefetch::DataId id : ids) names.push_back(step.graph[id].name);
  return names;
}

}  // namespace spillway::test
