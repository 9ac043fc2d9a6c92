#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// Returns how many tasks at the graph's begin load the batch: they read nothing, and cannot be
/// recomputed. They are the first runs of every plan, in the graph's order: a step that is repeated
/// launches these anew, and what they load from may be overwritten early.
[[nodiscard]] std::size_t count_loads(const TaskGraph& graph);

/// The constraints on every order of a graph's tasks, which follow from their operands and from
/// Task::after. An order that keeps them gives the bits of the graph's order.
///
/// Blocks in the same memory (BlockSizes::host_of()) count as one. With exchanges between ranks,
/// what uses an exchanged block afterwards follows all that makes the blocks of this exchange and
/// of those before it: ranks exchange in the graph's order.
class Precedence {
 public:
  /// In the largest page most blocks share memory, and all others have fewer constraints.
  /// Complexity: O(accesses * log accesses); with exchanges O(makers * users).
  explicit Precedence(const TaskGraph& graph, um::Bytes page = kLargestPage);

  /// Returns the tasks that wrote the operands of `task`, and those of its Task::after: every run
  /// of it follows their first runs. Each once, in the graph's order.
  [[nodiscard]] std::span<const TaskId> sources(TaskId task) const { return sources_[index(task)]; }
  /// Returns the tasks that `task` follows after all their runs, because it overwrites what they
  /// read or wrote; each once, in the graph's order. A task may be among sources(), too.
  [[nodiscard]] std::span<const TaskId> hazards(TaskId task) const { return hazards_[index(task)]; }
  /// Returns how many tasks there are.
  [[nodiscard]] std::size_t count() const { return sources_.size(); }

 private:
  static std::size_t index(TaskId task) { return static_cast<std::size_t>(task); }

  std::vector<std::vector<TaskId>> sources_;  // by task
  std::vector<std::vector<TaskId>> hazards_;  // by task
};

}  // namespace spillway::prefetch
