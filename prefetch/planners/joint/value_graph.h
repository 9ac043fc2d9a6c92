#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "prefetch/plan.h"
#include "prefetch/planner.h"

namespace spillway::prefetch {

/// The content of one movable block from the task that overwrites it to its last use in the graph's
/// order.
struct Value {
  std::uint32_t producer = 0;            ///< task
  std::int64_t bytes = 0;                ///< in whole pages
  std::vector<std::uint32_t> consumers;  ///< the other tasks that use it
};

/// A problem's tasks and the values between them: all that a search over sequences of runs needs.
/// Offloadable state counts as always near. Tasks are numbers, as TaskId.
struct ValueGraph {
  /// `runs`: every task once, for the algorithms. Complexity: that of Precedence.
  ValueGraph(const Problem& problem, const std::vector<TaskRun>& runs);

  std::vector<std::uint32_t> algorithms;           ///< by task
  std::vector<double> seconds;                     ///< by task
  std::vector<std::int64_t> workspaces;            ///< by task, in whole pages
  std::vector<std::int64_t> outputs;               ///< by task: bytes of its values
  std::vector<Value> values;                       ///< in order of producers
  std::vector<std::uint32_t> first_value;          ///< by task, and the end
  std::vector<std::vector<std::uint32_t>> inputs;  ///< by task: values
  /// By task: Precedence::sources() and hazards(), and the tasks for which it is one.
  std::vector<std::vector<std::uint32_t>> sources;
  std::vector<std::vector<std::uint32_t>> hazards;
  std::vector<std::vector<std::uint32_t>> source_of;
  std::vector<std::vector<std::uint32_t>> hazard_of;
  std::vector<bool> may_rerun;  ///< by task: it is recomputable, and alone writes what it writes
  std::size_t loads = 0;        ///< count_loads()
  std::int64_t pool = 0;        ///< bytes for values and workspaces

  [[nodiscard]] std::size_t count() const { return seconds.size(); }
  /// True if some task may run earlier or later than in the graph's order.
  [[nodiscard]] bool has_other_orders() const;
};

}  // namespace spillway::prefetch
