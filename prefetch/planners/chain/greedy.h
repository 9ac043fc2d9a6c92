#pragma once

#include "prefetch/planner.h"

namespace spillway::prefetch {

/// GREEDY of Beaumont et al. (section 4): the no-wait, eager, ordered schedule that offloads the
/// first k activations, whole, where k is the smallest with
///   |x_1| + ... + |x_k| >= M_peak - M_GPU.
///
/// The paper is for chains. On a DAG the activations are the blocks saved for the backward pass, in
/// order of production, and k is raised until every run fits: away is only what the forward pass is
/// done with and the backward pass has not read yet, so at the peak less than the first k may be
/// away. On a chain whose peak lies between the passes this is the paper's k.
///
/// The paper knows no algorithms; here each task gets its fastest where workspace pays, as in
/// choose_algorithms(). Moves are whole blocks; nothing is recomputed.
class Greedy final : public Planner {
 public:
  [[nodiscard]] std::string_view name() const override { return "greedy"; }
  [[nodiscard]] std::string_view description() const override {
    return "offload the first activations, as many as do not fit (Beaumont et al. 4)";
  }
  [[nodiscard]] std::variant<Plan, Infeasible> plan(const Problem& problem) const override;
};

}  // namespace spillway::prefetch
