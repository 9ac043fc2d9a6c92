#pragma once

#include "prefetch/planner.h"

namespace spillway::prefetch {

/// vDNN's static policy vDNN_all (Rhu et al., MICRO 2016, section III.C): the input of every layer
/// is offloaded, see VdnnRules. The paper evaluates it with performance-optimal and with
/// memory-optimal algorithms, for the whole network; here the first where they keep the budget,
/// else the second.
class VdnnAll final : public Planner {
 public:
  [[nodiscard]] std::string_view name() const override { return "vdnn-all"; }
  [[nodiscard]] std::string_view description() const override {
    return "offload the input of every layer, layer by layer (vDNN)";
  }
  [[nodiscard]] std::variant<Plan, Infeasible> plan(const Problem& problem) const override;
};

}  // namespace spillway::prefetch
