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

}  // namespace spillway::prefetch
