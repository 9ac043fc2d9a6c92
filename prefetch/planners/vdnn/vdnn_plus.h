#pragma once

#include "prefetch/planners/vdnn/vdnn_dyn.h"

namespace spillway::prefetch {

/// vDNN+ (moDNN section V-B): vDNN with moDNN's sub-batch sizes, so that it has plans for budgets
/// that vDNN alone fails at. Which of vDNN's policies is extended, the paper does not say; here the
/// dynamic one. One step at a given size is planned as vdnn-dyn does.
class VdnnPlus final : public Planner {
 public:
  [[nodiscard]] std::string_view name() const override { return "vdnn+"; }
  [[nodiscard]] std::string_view description() const override {
    return "vdnn-dyn with sub-batches by working set (moDNN V-B; see --sub-batch)";
  }
  [[nodiscard]] SubBatchRule sub_batch_rule() const override { return SubBatchRule::kWorkingSet; }
  [[nodiscard]] std::variant<Plan, Infeasible> plan(const Problem& problem) const override;
};

}  // namespace spillway::prefetch
