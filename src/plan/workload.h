#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "nets/network.h"
#include "prefetch/moves/micro_batch_size.h"
#include "prefetch/planner.h"
#include "src/ops/backend.h"
#include "src/plan/budget.h"
#include "src/program/micro_batches.h"
#include "src/program/step.h"
#include "um/bytes.h"

namespace spillway {

/// The page in which the tensors of a step move: as prefetch::choose_page(), and none smaller than
/// the device can move.
[[nodiscard]] um::Bytes step_page(const prefetch::TaskGraph& graph, const SizeModel& size_model);

/// The page of a run whose training step has this graph: step_page(), and none so small that
/// what `evaluation` says of its images would be moved before it is read.
[[nodiscard]] um::Bytes run_page(const prefetch::TaskGraph& training, const Step& evaluation,
                                 const SizeModel& size_model);

/// A network made ready to be planned: its steps, the page in which their tensors move, and the
/// near memory they need. Stays where it is made: plans and layouts point into it.
class Workload {
 public:
  Workload(const nets::Network& network, const SizeModel& size_model, const StepOptions& options);
  /// Of a batch cut as `batches` says. Evaluation takes as many samples at a time, or as
  /// make_evaluation_step() can.
  Workload(const nets::Network& network, const SizeModel& size_model, const StepOptions& options,
           const prefetch::BatchCut& batches);
  /// With the `training` of one of several ranks, which keeps `beside` always near besides the
  /// blocks of its steps. Evaluation takes as many samples at a time as a micro-batch has.
  Workload(const nets::Network& network, const SizeModel& size_model, const StepOptions& options,
           const MicroBatches& batches, Step training, um::Bytes beside);
  /// Evaluation alone, of `batch` samples at a time: its step stands in for the training's too, so
  /// that there is neither a gradient nor anything of an optimizer.
  struct EvaluationOnly {
    explicit EvaluationOnly(std::size_t samples, bool has_logits = false, bool has_bytes = false)
        : batch{samples}, gives_logits{has_logits}, has_byte_images{has_bytes} {}
    std::size_t batch;
    bool gives_logits;     ///< StepOptions::gives_logits
    bool has_byte_images;  ///< likewise
  };
  Workload(const nets::Network& network, const SizeModel& size_model, const EvaluationOnly& only);
  /// The same steps, whose state plans may send far: let_state_move().
  [[nodiscard]] std::unique_ptr<const Workload> with_moving_state(
      const SizeModel& size_model) const;
  /// The same with updates on the far side: update_far(). Null where there are none that it may
  /// run. Requires: with_moving_state().
  [[nodiscard]] std::unique_ptr<const Workload> with_far_updates(const SizeModel& size_model) const;
  /// The same steps, with gradients in other buckets: regroup_gradients(). `beside` says what is
  /// then always near besides their blocks.
  [[nodiscard]] std::unique_ptr<const Workload> with_buckets(
      const SizeModel& size_model, const prefetch::BucketRule& rule,
      const std::function<um::Bytes(const Step& training)>& beside) const;
  Workload(const Workload&) = delete;
  Workload& operator=(const Workload&) = delete;
  ~Workload() = default;

  /// The step that a batch runs: make_program().
  [[nodiscard]] const Step& training() const { return training_; }
  [[nodiscard]] const Step& evaluation() const { return evaluation_; }
  /// How the batch is cut, of which this may be one rank's part.
  [[nodiscard]] const MicroBatches& micro_batches() const { return batches_; }
  /// The page in which both steps move: what suits the training's.
  [[nodiscard]] um::Bytes page() const { return page_; }
  /// The largest block of parameters or optimizer numbers, of which those who initialise, save or
  /// load it need all parts that move at once, between steps.
  [[nodiscard]] um::Bytes state_at_once() const;
  [[nodiscard]] StepToPlan training_to_plan() const;

  /// What is always near besides the blocks of the steps.
  [[nodiscard]] um::Bytes beside() const { return beside_; }
  /// The need of training and evaluation together; `largest_task` is one of the training's.
  [[nodiscard]] const prefetch::NearNeed& need() const { return need_; }

  /// The budget under which each step is to be planned when the whole run has `budget`. The steps
  /// share near memory: each keeps something of its own always near, the pool of pages is common.
  [[nodiscard]] um::Bytes training_budget(um::Bytes budget) const;
  [[nodiscard]] um::Bytes evaluation_budget(um::Bytes budget) const;
  /// The budget of a whole run whose step training() was planned under `training_budget`.
  [[nodiscard]] um::Bytes run_budget(um::Bytes training_budget) const;

 private:
  Workload(const EvaluationOnly& only, Step evaluation, const SizeModel& size_model);
  Workload(const MicroBatches& batches, Step training, Step evaluation, um::Bytes beside,
           const SizeModel& size_model);

  // What one step keeps always near, and needs.
  struct Near {
    um::Bytes always;
    um::Bytes small;  // of it, all but state
    prefetch::NearNeed need;
  };
  [[nodiscard]] Near near_of(const prefetch::TaskGraph& graph) const;

  MicroBatches batches_;
  Step training_;
  um::Bytes beside_;  // always near, besides what the steps know
  Step evaluation_;
  um::Bytes page_;
  Near training_near_;
  Near evaluation_near_;
  um::Bytes common_near_;  // what both together keep always near
  prefetch::NearNeed need_;
};

}  // namespace spillway
