#pragma once

#include "nets/network.h"
#include "prefetch/need.h"
#include "src/backend.h"
#include "src/step.h"
#include "src/step_to_plan.h"
#include "um/bytes.h"

namespace spillway {

/// The page in which the tensors of a step move: as prefetch::choose_page(), and none smaller than
/// the device can move.
[[nodiscard]] um::Bytes step_page(const prefetch::TaskGraph& graph, const Sizing& sizing);

/// A network made ready to be planned: its steps, the page in which their tensors move, and the
/// near memory they need. Stays where it is made: plans and layouts point into it.
class Workload {
 public:
  Workload(const nets::Network& network, const Sizing& sizing, const StepOptions& options);
  Workload(const Workload&) = delete;
  Workload& operator=(const Workload&) = delete;
  ~Workload() = default;

  [[nodiscard]] const Step& training() const { return training_; }
  [[nodiscard]] const Step& evaluation() const { return evaluation_; }
  [[nodiscard]] um::Bytes page() const { return page_; }
  [[nodiscard]] StepToPlan training_to_plan() const {
    return {.graph = training_.graph,
            .page = page_,
            .need = need_,
            .elsewhere = common_near_ - training_near_};
  }

  /// What training and evaluation together need; `largest_task` is a task of the training step.
  [[nodiscard]] const prefetch::NearNeed& need() const { return need_; }

  /// The budget under which each step is to be planned when the whole run has `budget`. The steps
  /// share near memory: each keeps something of its own always near, the pool of pages is common.
  [[nodiscard]] um::Bytes training_budget(um::Bytes budget) const;
  [[nodiscard]] um::Bytes evaluation_budget(um::Bytes budget) const;
  /// The budget of a whole run whose training step was planned under `training_budget`.
  [[nodiscard]] um::Bytes run_budget(um::Bytes training_budget) const;

 private:
  Step training_;
  Step evaluation_;
  um::Bytes page_;
  um::Bytes training_near_;    ///< what the training step keeps always near
  um::Bytes evaluation_near_;  ///< what the evaluation step keeps always near
  um::Bytes common_near_;      ///< what both together do
  prefetch::NearNeed need_;
};

}  // namespace spillway
