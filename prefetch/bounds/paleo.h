#pragma once

#include <optional>
#include <string_view>

#include "prefetch/plan.h"
#include "prefetch/profile.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// The strategies that OOC-Paleo models.
enum class PaleoStrategy {
  kVdnnLike,      ///< section 3.4: everything is swapped, layer by layer
  kCapacityBased  ///< section 3.5: what does not fit is swapped, as early as there is room
};

/// "vdnn-like" or "capacity-based".
[[nodiscard]] std::string_view to_string(PaleoStrategy strategy);

/// The strategy that the planner of this name is closest to: vDNN-like for those that move layer by
/// layer (vdnn-all and its kin, ibm-ooc), capacity-based for all others.
[[nodiscard]] PaleoStrategy paleo_strategy(std::string_view planner);

/// What the analytic model says of a step.
struct PaleoStep {
  um::Nanoseconds makespan{0};
  um::Nanoseconds compute{0};  ///< of it: the tasks themselves
  /// Capacity-based: when, from the beginning of the backward pass, processing catches up with
  /// swap-in (T_catch, Eqs. 10 and 11); nothing when it never does.
  std::optional<um::Nanoseconds> catch_up;

  /// Part of the time in which a task runs (Eqs. 9 and 12 over all sections).
  [[nodiscard]] double utilization() const {
    return makespan.count() == 0
               ? 1.0
               : static_cast<double>(compute.count()) / static_cast<double>(makespan.count());
  }
};

/// OOC-Paleo: the analytic model of UM-Chainer's section 3 for a step in which every task runs
/// once.
///
/// A layer is a forward task with the backward tasks that read its inputs (find_backward_layers()),
/// its buffers are the saved blocks that leave after it, in bytes, and Proc_Th and T_proc are its
/// tasks' times. Swap_in_Th (Eq. 5: the least of far memory, near memory and connection) is the
/// link's rate, which is what a profile knows. A swap also takes the link's latency, once a layer,
/// but for Eq. 6, where swap-in is one stream.
///
/// - kVdnnLike: sections of T = max(T_proc(l), T_swap(l-1)) backward (Eq. 7). The paper has no
///   equation for the forward pass, where the end of layer l waits for what layer l-1 swaps out:
///   the same maximum. Between the passes nothing hides the last layer's way out and back (Fig. 3).
/// - kCapacityBased: the last layers that fit stay (Ca_layers). Backward, the bytes that are near
///   go by Eq. 6, layer by layer: what is processed leaves, and swap-in goes on while there is
///   room; where processing has caught up (Eq. 10), it waits as in Eq. 7. Forward, where again
///   there is no equation, a layer waits until enough is out to hold what it saves.
///
/// Of `plan` the algorithms, the page and the budget count, not its moves and recomputations.
/// Capacity is what the budget leaves beside everything that is not saved, at its largest. A layer
/// that does not fit is taken to fit alone: the model knows no infeasible budget.
/// Recomputation is not modelled (section 3.1). Complexity: O(accesses + layers).
[[nodiscard]] PaleoStep paleo_step(const TaskGraph& graph, const Profile& profile, const Plan& plan,
                                   PaleoStrategy strategy);

}  // namespace spillway::prefetch
