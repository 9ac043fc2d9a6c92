#pragma once

#include <string>
#include <vector>

#include "prefetch/files/json.h"
#include "prefetch/profile.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// A step that any framework recorded: what its tasks read and write, and how long they took.
struct Trace {
  std::string name;
  TaskGraph graph;
  std::vector<std::vector<um::Nanoseconds>> durations;  ///< [task][algorithm]
};

/// What the reader of a trace may add to it.
struct TraceOptions {
  bool offload_weights = false;  ///< weights that say nothing are offloadable
};

/// Reads a file of format "spillway-trace" version 1 (prefetch/README.md), as far as it says, and
/// fills in what it leaves open:
/// - A tensor that a task reads before any task wrote it comes from outside the step: it is state.
/// - A weight stays near, unless it says that it is offloadable, or all are asked for.
/// - Names that occur more than once get their index as a suffix: "MatMul_Forward #12".
/// - Phases as guess_phases() has them.
/// - A task that does not say that it is recomputable is not: no trace tells whether a task draws
///   random numbers, and running it again must give the same bits.
///
/// Throws: um::Error that names the place of what is wrong.
/// Complexity: O(size of the file).
[[nodiscard]] Trace read_trace(const JsonFile& file, const TraceOptions& options = {});

/// The trace's times, and `link`.
[[nodiscard]] Profile trace_profile(const Trace& trace, const LinkProfile& link);

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
