#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "prefetch/plan.h"
#include "prefetch/task_graph.h"

namespace spillway::prefetch::testing {

/// What a block holds: the number of the task that wrote it last, from 2 on.
using Content = std::uint32_t;
inline constexpr Content kNothing = 0;
inline constexpr Content kInitial = 1;  ///< of state: what it held when the step began

/// What one task finds in its operands when every task runs once, in order.
struct Promise {
  std::vector<Content> reads;    ///< as Task::reads
  std::vector<Content> updates;  ///< as Task::updates_once
};

/// Which content the order of a graph's tasks promises each of their reads, and state at the end.
class PromisedContents {
 public:
  explicit PromisedContents(const TaskGraph& graph) {
    for (const DataBlock& block : graph.data) {
      held_.push_back(block.kind == DataKind::kState ? kInitial : kNothing);
    }
    for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
      const Task& task = graph.tasks[t];
      promises_.push_back({.reads = held(task.reads), .updates = held(task.updates_once)});
      for (const auto* ids : {&task.writes, &task.updates_once}) {
        for (const DataId id : *ids) held_[static_cast<std::size_t>(id)] = written_by(TaskId(t));
      }
    }
  }

  [[nodiscard]] static Content written_by(TaskId task) { return static_cast<Content>(task) + 2; }
  /// The task that wrote it: not of kNothing or kInitial.
  [[nodiscard]] static TaskId writer_of(Content content) { return TaskId(content - 2); }

  [[nodiscard]] const Promise& operator[](TaskId task) const {
    return promises_[static_cast<std::size_t>(task)];
  }
  [[nodiscard]] Content final(DataId data) const { return held_[static_cast<std::size_t>(data)]; }

 private:
  [[nodiscard]] std::vector<Content> held(const std::vector<DataId>& ids) const {
    std::vector<Content> contents;
    contents.reserve(ids.size());
    for (const DataId id : ids) contents.push_back(held_[static_cast<std::size_t>(id)]);
    return contents;
  }

  std::vector<Content> held_;  // by block
  std::vector<Promise> promises_;
};

/// By run, the tensors among its operands that no later run reads before one overwrites them.
inline std::vector<std::vector<DataId>> dying_operands(const TaskGraph& graph,
                                                       std::span<const TaskRun> runs) {
  std::vector<std::vector<DataId>> dying(runs.size());
  std::vector<bool> is_needed(graph.data.size(), false);  // after the run at hand
  for (std::size_t i = runs.size(); i-- > 0;) {
    const Task& task = graph[runs[i].task];
    std::vector<DataId> operands = task.reads;
    operands.insert(operands.end(), task.writes.begin(), task.writes.end());
    std::ranges::sort(operands);
    operands.erase(std::unique(operands.begin(), operands.end()), operands.end());
    for (const DataId id : operands) {
      const auto data = static_cast<std::size_t>(id);
      if (graph[id].kind == DataKind::kTensor && !is_needed[data]) dying[i].push_back(id);
      is_needed[data] = std::ranges::count(task.reads, id) > 0;
    }
  }
  return dying;
}

}  // namespace spillway::prefetch::testing
