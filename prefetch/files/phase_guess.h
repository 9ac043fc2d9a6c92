#pragma once

#include <vector>

#include "prefetch/task_graph.h"

namespace spillway::prefetch {

/// The phase of each task of `graph`, from what it reads and writes alone: a forward pass keeps
/// what the backward pass will use up, so the step turns where the tensors that live on from one
/// task to the next are the most bytes, the first time. Tasks up to there are forward; later ones
/// that write state are updates, all others backward. A step in which nothing lives on is all
/// forward.
///
/// A wrong guess never makes a plan wrong: phases only say where strategies look first.
/// Complexity: O(accesses).
[[nodiscard]] std::vector<Phase> guess_phases(const TaskGraph& graph);

}  // namespace spillway::prefetch
