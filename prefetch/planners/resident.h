#pragma once

#include "prefetch/planner.h"

namespace spillway::prefetch {

/// Moves nothing: everything stays near. Feasible only when the whole step fits.
class Resident final : public Planner {
 public:
  [[nodiscard]] std::string_view name() const override { return "resident"; }
  [[nodiscard]] std::string_view description() const override {
    return "moves nothing; needs a budget that holds the whole step";
  }
  [[nodiscard]] std::variant<Plan, Infeasible> plan(const Problem& problem) const override;
};

}  // namespace spillway::prefetch
