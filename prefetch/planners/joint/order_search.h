#pragma once

#include <optional>

#include "prefetch/moves/offload_plan.h"
#include "prefetch/planner.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// Returns true if plans of the problem may run tasks in another order than the graph's, or run any
/// of them again, and this may pay: some order or recomputation is possible, and `makespan` is more
/// than a hundredth above any_order_bound() and, with exchanges between ranks, above a step in the
/// graph's order that moves nothing.
[[nodiscard]] bool may_pay_to_reorder(const Problem& problem, um::Nanoseconds makespan);

/// Plans steps of several micro-batches layer by layer (LayeredOrder): all of them or half of them
/// at a time, through more or fewer layers. Each order begins a short joint search of its own
/// (UnrolledStep); the best one a search with `evaluations`.
///
/// Returns the shortest verified plan below `limit`; nullopt if there is none, or a single
/// micro-batch. The result does not depend on the number of threads.
[[nodiscard]] std::optional<EvaluatedPlan> plan_layered(const Problem& problem,
                                                        um::Nanoseconds limit, int evaluations);

/// Searches for sequences of runs (search_sequence()) for the problem's budget and some larger
/// ones, and for a fluid link of full and of less speed. Plans each exactly (OffloadPlanner), as it
/// is and without its reruns. The best of both kinds begin joint searches of their own
/// (UnrolledStep), with `evaluations` each.
///
/// Returns the shortest verified plan below `limit`; nullopt if there is none. The result does not
/// depend on the number of threads.
[[nodiscard]] std::optional<EvaluatedPlan> plan_reordered(const Problem& problem,
                                                          um::Nanoseconds limit, int evaluations);

/// For problems in which nothing may move: as plan_reordered(), with a longer search for a sequence
/// that fits as a whole.
[[nodiscard]] std::optional<EvaluatedPlan> plan_reordered_without_moves(const Problem& problem,
                                                                        um::Nanoseconds limit);

}  // namespace spillway::prefetch
