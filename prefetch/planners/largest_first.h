#pragma once

#include "prefetch/planner.h"

namespace spillway::prefetch {

/// Offloads every block that the backward pass reads again, then takes offloads back: block by
/// block, the largest first, each stays near if it fits beside what is near already. Not published
/// under this name: a plain baseline for strategies that choose blocks.
///
/// Algorithms come first: each task gets the fastest whose workspace fits when everything is away.
/// Blocks of one size are taken in the order in which they leave. What is left to move is moved as
/// in the capacity-based strategy: prefetches as early as there is room. Whole blocks; nothing is
/// recomputed.
class LargestFirst final : public Planner {
 public:
  [[nodiscard]] std::string_view name() const override { return "largest-first"; }
  [[nodiscard]] std::string_view description() const override {
    return "offload everything saved, then keep the largest blocks that fit";
  }
  [[nodiscard]] std::variant<Plan, Infeasible> plan(const Problem& problem) const override;
};

}  // namespace spillway::prefetch
