#pragma once

#include "prefetch/planner.h"

namespace spillway::prefetch {

/// DYNPROG of Beaumont et al. (section 5.3): the activations that Algorithm 1 chooses for the
/// linearised step (see linearise() and best_chain_offload()), offloaded by the no-wait, ordered
/// schedule (OrderedOffload). Of a virtual layer all saved blocks go or none.
///
/// The chain is a model of the step: where the chosen blocks do not make every run fit, further
/// ones are offloaded, the first in order of production, as greedy does; likewise where Algorithm 1
/// finds nothing. Algorithms: the fastest that fit, or the first ones where memory is short,
/// whichever is shorter. Moves are whole blocks; nothing is recomputed.
class DynProg final : public Planner {
 public:
  [[nodiscard]] std::string_view name() const override { return "dynprog"; }
  [[nodiscard]] std::string_view description() const override {
    return "offload the activations that a dynamic program chooses (Beaumont et al. 5)";
  }
  [[nodiscard]] std::variant<Plan, Infeasible> plan(const Problem& problem) const override;
};

}  // namespace spillway::prefetch
