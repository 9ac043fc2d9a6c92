#pragma once

#include "prefetch/planner.h"

namespace spillway::prefetch {

/// Optimal checkpointing of the linearised step (see linearise() and RotorTable), without any move.
///
/// At most 100 stages and a memory in 256 units of the step's whole demand: the paper leaves both
/// to the implementation. The table's memory is a model of the step's, so the planner looks for the
/// largest memory of the table whose sequence of runs really fits the budget: by bisection, and if
/// that finds none by trying all. Algorithms are the first ones; each task then gets the fastest
/// whose workspace fits beside what is live at all its runs. A step that fits as it is recomputes
/// nothing, and so does a problem that allows no recomputation.
class Rotor final : public Planner {
 public:
  [[nodiscard]] std::string_view name() const override { return "rotor"; }
  [[nodiscard]] std::string_view description() const override {
    return "moves nothing; recomputes, optimally for a chain (rotor, RR-9302)";
  }
  [[nodiscard]] std::variant<Plan, Infeasible> plan(const Problem& problem) const override;
};

}  // namespace spillway::prefetch
