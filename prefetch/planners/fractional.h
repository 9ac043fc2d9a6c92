#pragma once

#include "prefetch/planner.h"

namespace spillway::prefetch {

/// Moves parts of blocks, and no more than must be away: at each task whatever is missing is taken
/// from the blocks used longest ago (Beaumont et al., section 4, Theorem 2: on a chain no plan that
/// only moves is shorter; facts on planning, section 3, COVER). Each comes back as early as memory
/// allows. Fast algorithms are taken back where their workspace costs more in moves than it saves.
/// Recomputes nothing. Where moves must take whole blocks it is the capacity-based strategy.
class Fractional final : public Planner {
 public:
  [[nodiscard]] std::string_view name() const override { return "fractional"; }
  [[nodiscard]] std::string_view description() const override {
    return "moves just the parts of blocks that do not fit, the longest unused first "
           "(Beaumont et al., section 4)";
  }
  [[nodiscard]] std::variant<Plan, Infeasible> plan(const Problem& problem) const override;
};

}  // namespace spillway::prefetch
