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
  kCapacityBased  ///< section 3.5: only the excess is swapped, as early as there is room
};

/// Returns "vdnn-like" or "capacity-based".
[[nodiscard]] std::string_view to_string(PaleoStrategy strategy);

/// Returns the strategy closest to the planner of this name: vDNN-like for planners that move layer
/// by layer (vdnn-all and variants, ibm-ooc), otherwise capacity-based.
[[nodiscard]] PaleoStrategy paleo_strategy(std::string_view planner);

/// The analytic model's result for a step.
struct PaleoStep {
  um::Nanoseconds makespan{0};
  um::Nanoseconds compute{0};  ///< of the tasks themselves
  /// Capacity-based: when processing catches up with swap-in, from the beginning of the backward
  /// pass (T_catch, Eqs. 10 and 11); nullopt when it never does.
  std::optional<um::Nanoseconds> catch_up;

  /// Returns the fraction of time in which a task runs (Eqs. 9 and 12 over all sections).
  [[nodiscard]] double utilization() const {
    return makespan.count() == 0
               ? 1.0
               : static_cast<double>(compute.count()) / static_cast<double>(makespan.count());
  }
};

/// OOC-Paleo: the analytic model of UM-Chainer's section 3 for a step in which every task runs
/// once.
///
/// A layer is a forward task with the backward tasks that read its inputs (find_backward_layers()).
/// Its buffers are the saved blocks that leave after it, in bytes; Proc_Th and T_proc are its
/// tasks' times. Swap_in_Th (Eq. 5: the least of far memory, near memory and connection) is the
/// profile's link rate. A swap also takes the link's latency, once a layer, except in Eq. 6, where
/// swap-in is one stream.
///
/// - kVdnnLike: sections of T = max(T_proc(l), T_swap(l-1)) backward (Eq. 7). The paper has no
///   equation for the forward pass, where the end of layer l waits for the swap-out of layer l-1:
///   the same maximum. Between the passes nothing hides the swap-out and swap-in of the last layer
///   (Fig. 3).
/// - kCapacityBased: the last layers that fit stay (Ca_layers). Backward, near bytes follow Eq. 6
///   layer by layer: processed bytes leave, and swap-in goes on while there is room. Once
///   processing has caught up (Eq. 10), it waits as in Eq. 7. Forward, without an equation in the
///   paper, a layer waits until enough is swapped out to hold its saved blocks.
///
/// The algorithms, the page and the budget of `plan` count; its moves and recomputations do not.
/// The capacity is what the budget leaves beside the largest use by unsaved blocks. A layer that
/// does not fit is assumed to fit alone: the model does not know infeasible budgets.
/// Recomputation is not modelled (section 3.1). Complexity: O(accesses + layers).
[[nodiscard]] PaleoStep paleo_step(const TaskGraph& graph, const Profile& profile, const Plan& plan,
                                   PaleoStrategy strategy);

}  // namespace spillway::prefetch
