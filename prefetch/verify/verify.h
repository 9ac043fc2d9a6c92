#pragma once

#include <string>
#include <variant>

#include "prefetch/plan.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// Why a plan must not run, as a sentence.
struct Violation {
  std::string reason;
};

/// What a verified plan is sure of.
struct Verified {
  um::Bytes peak;  ///< the most near memory in use at any moment, under any timing
};

/// Proves that `plan`, under any timing that its `after` conditions allow,
/// - runs every task, in order, and gives each the values that the sequence of all tasks would give
/// it,
/// - never reads a byte that is not near, and has far what the far side updates,
/// - exchanges gradients between ranks when they are complete, and uses them only afterwards,
/// - never uses more near memory than its budget,
/// - never waits for ever;
/// or says why not. A plan of Residency::kOnDemand must only have room for each single task.
/// Complexity: O(T + M + P), T runs with their operands, M moves, P pairs of a run and a prefetch
/// that may overlap.
[[nodiscard]] std::variant<Verified, Violation> verify(const TaskGraph& graph, const Plan& plan);

}  // namespace spillway::prefetch
