#pragma once

#include "prefetch/planner.h"

namespace spillway::prefetch {

/// No foresight. With unified memory: no hints at all, pages come by faults and leave by eviction.
/// With whole blocks, for explicit swapping: a block is fetched when a task needs it, the least
/// recently used blocks leave when room is needed, and the task waits for both.
class OnDemand final : public Planner {
 public:
  [[nodiscard]] std::string_view name() const override { return "on-demand"; }
  [[nodiscard]] std::string_view description() const override {
    return "no foresight: page faults alone (managed), or swap when needed (copy)";
  }
  [[nodiscard]] std::variant<Plan, Infeasible> plan(const Problem& problem) const override;
};

}  // namespace spillway::prefetch
