#include "src/sub_step.h"

#include <algorithm>

namespace spillway {

using prefetch::DataId;
using prefetch::DataKind;
using prefetch::Phase;
using prefetch::Task;
using prefetch::TaskGraph;

TaskGraph make_sub_step(TaskGraph training, SubStepEnd end) {
  std::vector<bool> is_gradient(training.data.size(), false);
  for (const Task& task : training.tasks) {
    if (task.phase != Phase::kUpdate) continue;
    for (const DataId id : task.reads) {
      if (training[id].kind == DataKind::kTensor) is_gradient[static_cast<std::size_t>(id)] = true;
    }
  }
  for (std::size_t i = 0; i < is_gradient.size(); ++i) {
    if (is_gradient[i]) training.data[i].kind = DataKind::kState;
  }
  if (end == SubStepEnd::kGradients) {
    std::erase_if(training.tasks, [](const Task& task) { return task.phase == Phase::kUpdate; });
  }
  for (Task& task : training.tasks) {
    for (const DataId id : task.writes) {
      const bool reads = std::ranges::count(task.reads, id) > 0;
      if (is_gradient[static_cast<std::size_t>(id)] && !reads) task.reads.push_back(id);
    }
  }
  return training;
}

bool normalizes_by_batch(const TaskGraph& training) {
  return std::ranges::any_of(training.tasks,
                             [](const Task& task) { return !task.updates_once.empty(); });
}

}  // namespace spillway
