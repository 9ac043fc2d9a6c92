#pragma once

#include "prefetch/planner.h"

namespace spillway::prefetch {

/// No foresight. With unified memory: no hints at all, pages come by faults and leave by eviction;
/// such a page is Plan::page, which choose_page() makes smaller than 2 MiB where tensors are small.
/// With whole blocks, for explicit swapping: a block is fetched when a task needs it, the least
/// recently used blocks leave when room is needed, and the task waits for both.
class OnDemand final : public Planner {
 public:
  [[nodiscard]] std::string_view name() const override { return "on-demand"; }
  [[nodiscard]] std::string_view description() const override {
    return "no foresight: page faults alone, each for one page of the plan, which is 2 MiB, or "
           "down "
           "to 4 KiB where tensors are small (managed); or swap when needed (copy)";
  }
  [[nodiscard]] std::variant<Plan, Infeasible> plan(const Problem& problem) const override;
};

}  // namespace spillway::prefetch
