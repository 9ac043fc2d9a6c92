#pragma once

#include "prefetch/planner.h"

namespace spillway::prefetch {

/// TFLMS (Le et al. 2018), as Beaumont et al. implement it (section 6): parameterised with the
/// number of saved tensors to offload, counted from the beginning of the network (its option
/// n_tensors), and with how many layers in advance they are prefetched (lb); the best configuration
/// is taken. Profiles serve to compare configurations, not within one: what moves when depends on
/// the graph alone, and all that was chosen moves, whether memory needs it or not.
///
/// Configurations: 0 to all tensors, 32 steps at most, times 1, 2, 4, 8, ... layers; each that
/// keeps the budget is simulated. Offloads start as soon as the block is no longer used forward.
/// TFLMS cannot delay a task until memory is free, so what does not fit in time fails; here a run
/// whose memory counts on an offload waits for it, as a plan must be safe under any timing. The
/// source is silent on algorithms: each task gets the fastest whose workspace fits. Whole blocks;
/// nothing is recomputed.
class Tflms final : public Planner {
 public:
  [[nodiscard]] std::string_view name() const override { return "tflms"; }
  [[nodiscard]] std::string_view description() const override {
    return "offload the first n saved tensors, prefetch d layers ahead; best n and d (TFLMS)";
  }
  [[nodiscard]] std::variant<Plan, Infeasible> plan(const Problem& problem) const override;
};

}  // namespace spillway::prefetch
