#pragma once

#include "prefetch/planner.h"

namespace spillway::prefetch {

/// The capacity-based strategy of UM-Chainer (Zhang et al., section 3.5): blocks leave whole, the
/// longest unused first, only until the rest fits in near memory, and come back as early as there
/// is room, whichever task is running. Each task has its fastest algorithm that fits when all else
/// is far, or its first where state that stays near leaves no room for workspaces. Recomputes
/// nothing (section 3.1).
///
/// The paper speaks of layers of a chain; here a block may leave in any gap between two uses.
class Capacity final : public Planner {
 public:
  [[nodiscard]] std::string_view name() const override { return "capacity"; }
  [[nodiscard]] std::string_view description() const override {
    return "keeps near what fits, moves the rest in whole blocks as early as there is room "
           "(UM-Chainer)";
  }
  [[nodiscard]] std::variant<Plan, Infeasible> plan(const Problem& problem) const override;
};

}  // namespace spillway::prefetch
