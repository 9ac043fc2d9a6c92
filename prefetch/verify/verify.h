#pragma once

#include <string>
#include <variant>

#include "prefetch/plan.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// The reason why a plan must not run, as a sentence.
struct Violation {
  std::string reason;
};

/// Guarantees of a verified plan.
struct Verified {
  um::Bytes peak;  ///< the most near memory in use at any moment, under any timing
};

/// Proves that `plan`, under any timing that its `after` conditions allow,
/// - runs every task, in any order, with the same values as the sequence of all tasks,
/// - never reads a byte that is not near, and has all operands of far updates far,
/// - exchanges gradients between ranks when they are complete, and uses them only afterwards,
/// - never uses more near memory than its budget,
/// - never deadlocks;
/// otherwise returns the violation. A plan of Residency::kOnDemand only needs room for each single
/// task.
/// Complexity: O(T + M + P), T runs with their operands, M moves, P pairs of a run and a prefetch
/// that may overlap.
[[nodiscard]] std::variant<Verified, Violation> verify(const TaskGraph& graph, const Plan& plan);

}  // namespace spillway::prefetch
