#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "prefetch/plan.h"
#include "prefetch/planner.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// Orders of a step of several micro-batches in which they go through the network layer by layer,
/// so that weights which are far are fetched once for several micro-batches.
///
/// Micro-batches are those that tasks say (Task::micro_batch), or found by data: their forward
/// tasks have no tensor in common, and read the same movable state in the same sequence. Tasks on
/// the way back belong to the last micro-batch that made a tensor which they read; sums of
/// gradients thus keep their order.
class LayeredOrder {
 public:
  /// `problem` must outlive it. Complexity: that of Precedence.
  explicit LayeredOrder(const Problem& problem);

  /// Returns the number of micro-batches; 1 if the step does not repeat the reads of movable state.
  [[nodiscard]] std::size_t micro_batches() const { return micro_batches_; }

  /// Returns `runs` in an order in which each `group` micro-batches, one behind the other, pass
  /// layers with up to `weights` of state, or a single task's, before the next layers. `runs`:
  /// every task once, in the graph's order. Requires: several micro-batches.
  [[nodiscard]] std::vector<TaskRun> order(std::span<const TaskRun> runs, std::size_t group,
                                           um::Bytes weights) const;

 private:
  [[nodiscard]] std::vector<std::uint32_t> cut(um::Bytes weights) const;

  const Problem& problem_;
  std::size_t micro_batches_ = 1;
  std::vector<std::uint32_t> micro_batch_;  // by task
  std::vector<std::uint32_t> reads_;        // by task: reads of state by its micro-batch until then
  std::vector<std::vector<DataId>> state_;  // by read of state: the blocks
};

}  // namespace spillway::prefetch
