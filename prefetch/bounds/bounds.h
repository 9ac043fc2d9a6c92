#pragma once

#include <nlohmann/json.hpp>

#include "prefetch/planner.h"
#include "prefetch/profile.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// Minima of a step's makespan that are proved: no plan, whatever its order of moves, is faster.
///
/// All of them hold for one and for two copy engines, for moves of whole blocks and of parts, and
/// for every choice of algorithms (each task counts with its fastest, and with the workspace of the
/// one that needs least). They hold for plans that run the tasks in the graph's order and move the
/// blocks that BlockSizes calls movable, in whole pages; splitting tasks or the batch can beat
/// them.
///
/// **Offloadable state** is movable all step long, and each of its pages ends the step where it
/// began it (StateHome). Consider what must be far at the start of task t, and again at its end.
/// - *Before t* a page that is far at its start has crossed the link out if a task wrote it in this
///   step: the far copy from before is stale, and the new one is made after the last write before
///   t. If no task wrote it, it may have been far since the step began, or near with a valid far
///   copy, and nothing need have crossed.
/// - *After t* a page that is far at its end crosses the link in if a task still uses it, before
///   that task. If none does, it may be far between steps, and nothing need cross.
///
/// So, among the bytes that are missing at t, head and tail let the bytes of such state go free
/// which exist at t, and treat all other state as tensors that nobody can compute again. It does
/// not matter which bytes are missing: those that are free, then those that are available first,
/// are a best choice, and the choice before t and the one after t are made apart. What a step
/// leaves to the next one is no escape: a copy that is made late, a page that comes early, belong
/// to the step in which they happen, whose end waits for them. That the first step may find copies
/// that nobody made costs nothing here, either: they go free.
struct Bounds {
  /// Beaumont et al., Proposition 3: the tasks take their time, and what exceeds the budget at the
  /// peak crosses the link twice, but for state that need not. For plans that only move.
  um::Nanoseconds beaumont{0};
  /// LB2, head and tail. Before a task starts, its predecessor has started no sooner than its own
  /// head and has run, and what exceeds the budget at this task has left, no block sooner than it
  /// is written; after it the mirror image, no block later than it is read. The largest sum of
  /// head, task and tail over all tasks. For plans that only move; never less than `beaumont`.
  um::Nanoseconds offload{0};
  /// LB2mix: of one task at a time, where each byte that is missing at a task was either moved or
  /// will be computed again after it; the cheapest division counts. Who computes a block again runs
  /// all tasks that wrote it, and those of what they read that is not kept, at no less than these
  /// tasks' time per byte (RecomputationCurve). For plans that move and recompute, and move no
  /// content that was overwritten since; equals `offload` where the problem allows no
  /// recomputation.
  um::Nanoseconds mixed{0};
  /// `offload` with TransitionBound: near tasks that fill near memory make way for each other.
  /// No less than exchange_bound().
  um::Nanoseconds offload_transition{0};
  /// `mixed` with TransitionBound, likewise.
  um::Nanoseconds mixed_transition{0};
};

/// Requires: the budget is at least near_need().smallest.
/// Complexity: O(tasks * blocks * log blocks); above 2000 tasks all but `beaumont` look at every
/// 50th task, above 20 000 at 400 tasks, which keeps them bounds.
[[nodiscard]] Bounds lower_bounds(const Problem& problem);

/// Bounds::mixed_transition alone, which takes a fraction of the time where there are many tasks.
[[nodiscard]] um::Nanoseconds mixed_transition_bound(const Problem& problem);

/// The bounds in seconds, by name: what `plan --json` and `sweep --json` say.
[[nodiscard]] nlohmann::json to_json(const Bounds& bounds);

/// A minimum of the makespan of a step with exchanges between ranks, whatever moves: the last
/// exchanges, any number of them, begin when the first of these is ready, take place one after the
/// other as fast as alone, and what needs the gradients of the last one to end follows. 0 without
/// exchanges. Requires: exchanges are in the order in which they are ready.
/// Complexity: O(tasks with their operands).
[[nodiscard]] um::Nanoseconds exchange_bound(const TaskGraph& graph, const Profile& profile);

}  // namespace spillway::prefetch
