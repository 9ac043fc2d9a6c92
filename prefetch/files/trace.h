#pragma once

#include <string>
#include <vector>

#include "prefetch/files/json.h"
#include "prefetch/profile.h"
#include "prefetch/task_graph.h"
#include "prefetch/varied_step.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// A step recorded by any framework: the reads, writes and times of its tasks.
struct Trace {
  std::string name;
  TaskGraph graph;                                      ///< in the first variants
  std::vector<std::vector<um::Nanoseconds>> durations;  ///< [task][algorithm]
  VariedStep varied{};  ///< without groups if tasks have no variants
};

/// Options for reading a trace.
struct TraceOptions {
  bool offload_weights = false;  ///< weights without "offloadable" are offloadable
};

/// Reads a file of format "spillway-trace" version 1 or 2 (prefetch/README.md). Missing data has
/// defaults:
/// - A tensor that a task reads before any task wrote it comes from outside the step: it is state.
/// - A weight stays near unless it is marked as offloadable, or TraceOptions::offload_weights is
///   set.
/// - Names that occur more than once get their index as a suffix: "MatMul_Forward #12".
/// - guess_phases() gives the phases.
/// - A task is recomputable only if it is marked so: a trace does not tell whether a task draws
///   random numbers, and a second run must give the same bits.
///
/// Throws: um::Error that names the place of the error.
/// Complexity: O(size of the file).
[[nodiscard]] Trace read_trace(const JsonFile& file, const TraceOptions& options = {});

/// Returns a step and its times as a "spillway-trace": of version 1 where that can say it all, with
/// micro-batches, Task::after or variants of version 2. In the trace, state that shares memory
/// (DataBlock::lies_in) has memory of its own, and a task that updates state once is not
/// recomputable. Requires: no far updates and no exchanges.
[[nodiscard]] nlohmann::json to_json(const Trace& trace);

/// Returns a profile with the trace's times and `link`.
[[nodiscard]] Profile trace_profile(const Trace& trace, const LinkProfile& link);

/// Guesses the phase of each task of `graph` from its reads and writes. A forward pass stores what
/// the backward pass consumes, so the step turns at the first maximum of live bytes between tasks.
/// Tasks up to there are forward; later tasks are updates if they write state, otherwise backward.
/// A step without live tensors between tasks is all forward.
///
/// A wrong guess never makes a plan wrong: phases only guide strategies.
/// Complexity: O(accesses).
[[nodiscard]] std::vector<Phase> guess_phases(const TaskGraph& graph);

}  // namespace spillway::prefetch
