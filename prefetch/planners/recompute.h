#pragma once

#include "prefetch/planner.h"

namespace spillway::prefetch {

/// Recomputation alone, on any graph: drops outputs of cheap tasks after the forward pass and makes
/// them again in the backward pass, and never moves anything. See find_dropped() for the search.
///
/// Algorithms are the first ones; each task then gets the fastest whose workspace fits beside what
/// is live at all its runs. A step that fits as it is recomputes nothing, and so does a problem
/// that allows no recomputation.
class Recompute final : public Planner {
 public:
  [[nodiscard]] std::string_view name() const override { return "recompute"; }
  [[nodiscard]] std::string_view description() const override {
    return "moves nothing; drops what is cheap to compute again until the rest fits";
  }
  [[nodiscard]] std::variant<Plan, Infeasible> plan(const Problem& problem) const override;
};

}  // namespace spillway::prefetch
