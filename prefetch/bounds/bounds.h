#pragma once

#include <nlohmann/json.hpp>

#include "prefetch/planner.h"
#include "prefetch/profile.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// Proved lower bounds of a step's makespan: no plan is faster, whatever its order of moves. All
/// but `any_order` are bounds of the graph's order of tasks.
///
/// They hold for one and for two copy engines, for moves of whole blocks and of parts, and for
/// every choice of algorithms: each task counts with its fastest time, and with its least
/// workspace. They hold for plans that run the tasks in the graph's order and move the blocks that
/// BlockSizes calls movable, in whole pages. Splitting tasks or the batch can beat them.
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
/// Head and tail therefore treat such bytes as free if they are missing at t and exist then. All
/// other state counts as tensors that cannot be recomputed. The bound covers any choice of missing
/// bytes: free bytes first, then those available first, is optimal. The choices before and after t
/// are independent. Deferring work to the next step does not help: a late copy or an early page
/// belongs to the step in which it happens, and the end of that step waits for it. The first step
/// may find copies without making them; the bound holds, since these bytes are free.
struct Bounds {
  /// Beaumont et al., Proposition 3: the tasks take their time, and the bytes beyond the budget at
  /// the peak cross the link twice, except free state. For plans that only move.
  um::Nanoseconds beaumont{0};
  /// LB2, head and tail: the largest sum of head, task and tail over all tasks. A task's head ends
  /// after its predecessor, started after its own head, has run, and after the bytes beyond the
  /// budget have left; each block leaves after it is written. The tail is symmetric: each block
  /// returns before it is read. For plans that only move; never less than `beaumont`.
  um::Nanoseconds offload{0};
  /// LB2mix: a bound from one task at a time. Each byte that is missing at a task was moved or will
  /// be recomputed afterwards; the cheapest division counts. Recomputing a block runs all tasks
  /// that wrote it, and those of their inputs that are not kept, at no less than their time per
  /// byte (RecomputationCurve). For plans that move and recompute, without moving overwritten
  /// content; equals `offload` if the problem does not allow recomputation.
  um::Nanoseconds mixed{0};
  /// `offload` with TransitionBound: neighbouring tasks that fill near memory wait for each other's
  /// blocks to move. At least exchange_bound().
  um::Nanoseconds offload_transition{0};
  /// `mixed` with TransitionBound. At least exchange_bound().
  um::Nanoseconds mixed_transition{0};
  /// any_order_bound(): the only one for plans that run tasks in another order than the graph's.
  um::Nanoseconds any_order{0};
};

/// Requires: the budget is at least near_need().smallest.
/// Complexity: O(tasks * blocks * log blocks). Above 2000 tasks all bounds except `beaumont` sample
/// every 50th task, above 20 000 they sample 400 tasks; they remain bounds.
[[nodiscard]] Bounds lower_bounds(const Problem& problem);

/// Returns only Bounds::mixed_transition, which is much faster for many tasks.
[[nodiscard]] um::Nanoseconds mixed_transition_bound(const Problem& problem);

/// Returns the bounds in seconds, by name, as in `plan --json` and `sweep --json`.
[[nodiscard]] nlohmann::json to_json(const Bounds& bounds);

/// Returns a lower bound of the makespan of a step with exchanges between ranks, for any moves. The
/// last k exchanges start when the first of them is ready, and run in sequence as fast as alone.
/// Tasks that need the gradients of the last finished one follow. Returns 0 without exchanges.
/// Requires: exchanges are in the order in which they are ready.
/// Complexity: O(tasks with their operands).
[[nodiscard]] um::Nanoseconds exchange_bound(const TaskGraph& graph, const Profile& profile);

}  // namespace spillway::prefetch
