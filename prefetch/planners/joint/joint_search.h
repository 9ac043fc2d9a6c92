#pragma once

#include <optional>
#include <span>
#include <variant>

#include "prefetch/moves/offload_plan.h"
#include "prefetch/planner.h"
#include "prefetch/planners/joint/portfolio.h"

namespace spillway::prefetch {

/// How long joint_search() may look on. No clock: the same plan on every machine.
struct SearchLimits {
  /// Plans made and simulated; at most 100 for each decision that is open, of 20 idle intervals.
  int evaluations = 2000;
  /// Good enough: the search ends at a makespan of so many lower bounds.
  double of_bound = 1.0005;
};

/// Limits that keep planning within a second up to 1000 tasks, within three at 10 000 and within
/// ten at 100 000, on two processors of 2025.
[[nodiscard]] SearchLimits limits_for(const Problem& problem);

/// Chooses retention policies and algorithms together, each candidate judged by the simulated
/// length of its plan of page-granular moves: the best number of cheapest blocks to drop; then,
/// until the limits are met, whatever helps most of what would help the longest stalls, of ranges
/// of blocks (by cost, by position) and of tasks whose decision is changed together, ranges being
/// halved again and again; of what leaves first, in which order, and what leaves although no run
/// needs its room. Then all of what is alike changes together (alike_blocks()), and moves look
/// ahead; then come random changes.
///
/// Candidates are evaluated in parallel; the result does not depend on how many threads there are.
/// Nothing when the budget is too small for every plan.
[[nodiscard]] std::optional<EvaluatedPlan> joint_search(const Problem& problem,
                                                        const SearchLimits& limits);

/// The default: what moves, what is recomputed and which algorithms run, chosen together by
/// joint_search(); or the plan of one of `strategies`, where that is shorter still, so that its
/// step is never longer in simulation than that of any of them that is asked (Portfolio).
/// Spillway's own.
[[nodiscard]] std::variant<Plan, Infeasible> plan_joint(
    const Problem& problem, std::span<const StartingStrategy> strategies = {});

}  // namespace spillway::prefetch
