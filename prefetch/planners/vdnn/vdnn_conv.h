#pragma once

#include "prefetch/planner.h"

namespace spillway::prefetch {

/// vDNN's static policy vDNN_conv (Rhu et al., MICRO 2016, section III.C): the inputs of
/// convolutions alone are offloaded, since convolutions are long enough to hide that; see
/// VdnnRules. A graph that does not say which tasks are convolutions moves nothing. Algorithms as
/// in vdnn-all.
class VdnnConv final : public Planner {
 public:
  [[nodiscard]] std::string_view name() const override { return "vdnn-conv"; }
  [[nodiscard]] std::string_view description() const override {
    return "offload the inputs of convolutions alone, layer by layer (vDNN)";
  }
  [[nodiscard]] std::variant<Plan, Infeasible> plan(const Problem& problem) const override;
};

}  // namespace spillway::prefetch
