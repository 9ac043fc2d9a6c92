#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <variant>

#include "prefetch/moves/offload_plan.h"
#include "prefetch/planner.h"

namespace spillway::prefetch {

/// A strategy beside which joint's own search is put.
struct StartingStrategy {
  std::variant<Plan, Infeasible> (*plan)(const Problem&) = nullptr;
  bool recomputes = false;    ///< it may run tasks again; else it only moves
  std::size_t max_tasks = 0;  ///< of larger steps it is not asked: it would take too long
};

/// The plans of other strategies that a problem allows: verified, without page faults, without
/// recomputations where it allows none, of whole blocks where it wants them. A strategy whose plan
/// does not verify, or that breaks a contract of its own, is dropped: its own tests find it.
class Portfolio {
 public:
  /// `problem` and `strategies` must outlive it.
  Portfolio(const Problem& problem, std::span<const StartingStrategy> strategies);

  /// The shortest of their plans, of equals the first one's. Nothing where none is shorter than
  /// `limit`, or where lower_bounds() prove that none can be.
  ///
  /// The strategies plan at once, and the result does not depend on the number of threads.
  [[nodiscard]] std::optional<EvaluatedPlan> shorter(um::Nanoseconds limit) const;

 private:
  [[nodiscard]] bool is_allowed(const Plan& plan) const;
  [[nodiscard]] std::optional<EvaluatedPlan> plan_by(const StartingStrategy& strategy) const;

  const Problem& problem_;
  std::span<const StartingStrategy> strategies_;
};

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
