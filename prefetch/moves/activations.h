#pragma once

#include <span>
#include <vector>

#include "prefetch/liveness.h"
#include "prefetch/task_graph.h"

namespace spillway::prefetch {

/// A tensor that the forward pass leaves for the backward pass: an activation.
struct Activation {
  DataId data{};
  Position produced = 0;  ///< the run that begins it
  Position written = 0;   ///< the last run of the forward pass that writes it
  Position last = 0;      ///< the last run of the forward pass that uses it
  Position next = 0;      ///< the first run after the forward pass that uses it
};

/// The movable saved blocks of a sequence of all tasks in order, in order of production. The
/// forward pass ends where the first task of another phase runs.
/// Complexity: O(accesses).
[[nodiscard]] std::vector<Activation> find_activations(const TaskGraph& graph,
                                                       const BlockSizes& block_sizes,
                                                       std::span<const Life> lives);

/// The number of forward tasks before the first task of another phase.
[[nodiscard]] Position forward_end(const TaskGraph& graph);

}  // namespace spillway::prefetch
