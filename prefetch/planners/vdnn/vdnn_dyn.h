#pragma once

#include "prefetch/planner.h"

namespace spillway::prefetch {

/// vDNN's dynamic policy (Rhu et al., MICRO 2016, section III.C; the article's "How to get the best
/// performance given limited memory budget"): trial steps, of which the first that keeps the budget
/// is taken:
/// 1. nothing offloaded, performance-optimal algorithms;
/// 2. vdnn-conv, then vdnn-all, performance-optimal;
/// 3. vdnn-conv, then vdnn-all, algorithms downgraded greedily where they do not fit.
/// The paper's very first trial, vdnn-all with memory-optimal algorithms, decides whether the
/// network can be trained at all; here it is the answer when all others fail. A trial is a question
/// to the liveness analysis, not a measured step.
class VdnnDyn final : public Planner {
 public:
  [[nodiscard]] std::string_view name() const override { return "vdnn-dyn"; }
  [[nodiscard]] std::string_view description() const override {
    return "nothing, convolutions or all offloaded, as the budget demands (vDNN)";
  }
  [[nodiscard]] std::variant<Plan, Infeasible> plan(const Problem& problem) const override;
};

}  // namespace spillway::prefetch
