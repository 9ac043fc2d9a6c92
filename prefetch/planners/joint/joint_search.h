#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <variant>

#include "prefetch/moves/offload_plan.h"
#include "prefetch/planner.h"

namespace spillway::prefetch {

/// A strategy that competes with joint's own search.
struct StartingStrategy {
  std::variant<Plan, Infeasible> (*plan)(const Problem&) = nullptr;
  bool recomputes = false;    ///< may recompute; otherwise it only moves
  std::size_t max_tasks = 0;  ///< limit of its step size, beyond which it would take too long
};

/// The allowed plans of other strategies: verified, without page faults, without recomputation if
/// the problem forbids it, and of whole blocks if it requires them. A strategy is dropped if its
/// plan does not verify, or it violates a contract; its own tests report that.
class Portfolio {
 public:
  /// `problem` and `strategies` must outlive it.
  Portfolio(const Problem& problem, std::span<const StartingStrategy> strategies);

  /// Returns the shortest plan, among equals the first one's; nullopt if none is shorter than
  /// `limit`, or lower_bounds() prove that none can be.
  ///
  /// Strategies plan in parallel; the result does not depend on the number of threads.
  [[nodiscard]] std::optional<EvaluatedPlan> shorter(um::Nanoseconds limit) const;

 private:
  [[nodiscard]] bool is_allowed(const Plan& plan) const;
  [[nodiscard]] std::optional<EvaluatedPlan> plan_by(const StartingStrategy& strategy) const;

  const Problem& problem_;
  std::span<const StartingStrategy> strategies_;
};

/// Limits of joint_search(). Independent of time: the same plan on every machine.
struct SearchLimits {
  /// Plans made and simulated; at most 100 per open decision, counting 20 idle intervals.
  int evaluations = 2000;
  /// The search ends at a makespan of this multiple of the lower bound.
  double of_bound = 1.0005;
};

/// Returns limits that keep planning within a second up to 1000 tasks, three at 10 000 and ten at
/// 100 000, on two processors of 2025.
[[nodiscard]] SearchLimits limits_for(const Problem& problem);

/// Chooses retention policies and algorithms together. Each candidate is judged by the simulated
/// length of its plan with page-granular moves. First chooses how many of the cheapest blocks to
/// drop. Then repeatedly applies the most helpful change, until the limits are met: against the
/// longest stalls; for ranges of blocks (by cost, by position) and of tasks, which are halved again
/// and again; and for moves: which blocks leave, in which order, and which leave although no run
/// needs their room. Then changes groups of alike decisions (alike_blocks()) and the look-ahead of
/// moves; then changes randomly.
///
/// Candidates are evaluated in parallel; the result does not depend on the number of threads.
/// Returns nullopt when the budget is too small for every plan.
[[nodiscard]] std::optional<EvaluatedPlan> joint_search(const Problem& problem,
                                                        const SearchLimits& limits);

/// The default planner, Spillway's own: joint_search() chooses moves, recomputations and algorithms
/// together. If the plan of one of `strategies` is shorter, returns that. A step is thus never
/// longer in simulation than with any asked strategy (Portfolio). Then changes the order of tasks,
/// and recomputes any of them, if that may pay (plan_layered(), plan_reordered()).
[[nodiscard]] std::variant<Plan, Infeasible> plan_joint(
    const Problem& problem, std::span<const StartingStrategy> strategies = {});

}  // namespace spillway::prefetch
