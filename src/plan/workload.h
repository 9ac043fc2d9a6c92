#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "nets/network.h"
#include "prefetch/moves/sub_batch.h"
#include "prefetch/planner.h"
#include "src/ops/backend.h"
#include "src/plan/budget.h"
#include "src/program/shard_steps.h"
#include "src/program/step.h"
#include "src/program/sub_step.h"
#include "um/bytes.h"

namespace spillway {

/// The page in which the tensors of a step move: as prefetch::choose_page(), and none smaller than
/// the device can move.
[[nodiscard]] um::Bytes step_page(const prefetch::TaskGraph& graph, const SizeModel& size_model);

/// The page of a run whose first training step has this graph: step_page(), and none so small that
/// what `evaluation` says of its images would be moved before it is read.
[[nodiscard]] um::Bytes run_page(const prefetch::TaskGraph& first, const Step& evaluation,
                                 const SizeModel& size_model);

/// A network made ready to be planned: its steps, the page in which their tensors move, and the
/// near memory they need. Stays where it is made: plans and layouts point into it.
class Workload {
 public:
  Workload(const nets::Network& network, const SizeModel& size_model, const StepOptions& options);
  /// Of a batch cut as `batches` says. Evaluation takes as many samples at a time, or as
  /// make_evaluation_step() can.
  Workload(const nets::Network& network, const SizeModel& size_model, const StepOptions& options,
           const prefetch::SubBatches& batches);
  /// Of one rank's shards of a batch, which keep `beside` always near besides the blocks of their
  /// steps. Evaluation takes as many samples at a time as a shard has. Throws: um::Error where
  /// nothing is trained.
  Workload(const nets::Network& network, const SizeModel& size_model, const StepOptions& options,
           const ShardedBatch& batch, ShardSteps shards, um::Bytes beside);
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
  /// run, or several ranks. Requires: with_moving_state(); the batch is not cut.
  [[nodiscard]] std::unique_ptr<const Workload> with_far_updates(const SizeModel& size_model) const;
  /// The same steps as those of one of several ranks: divide_updates(), exchange_gradients().
  /// Requires: the batch is not cut, and nothing is updated far. Throws: um::Error where nothing is
  /// trained.
  [[nodiscard]] std::unique_ptr<const Workload> with_exchanges(
      const SizeModel& size_model, const prefetch::BucketRule& rule,
      const OptimizerDivision& division = {}) const;
  /// The same steps, of which the last exchanges gradients in other buckets: regroup_gradients().
  /// `beside` says what is always near besides the blocks of the steps where that one is the last.
  [[nodiscard]] std::unique_ptr<const Workload> with_buckets(
      const SizeModel& size_model, const prefetch::BucketRule& rule,
      const std::function<um::Bytes(const Step& last)>& beside) const;
  Workload(const Workload&) = delete;
  Workload& operator=(const Workload&) = delete;
  ~Workload() = default;

  /// What a batch runs: one step, or the sub-steps of make_sub_steps() or make_shard_steps().
  [[nodiscard]] const std::vector<RepeatedStep>& training_steps() const { return training_; }
  /// Which of them, one after the other.
  [[nodiscard]] const std::vector<std::size_t>& sequence() const { return sequence_; }
  /// The one that updates: the whole batch's, or its last sub-batch's or shard's.
  [[nodiscard]] const Step& training() const { return training_.back().step; }
  [[nodiscard]] const Step& evaluation() const { return evaluation_; }
  [[nodiscard]] const prefetch::SubBatches& sub_batches() const { return batches_; }
  /// The page in which all of them move: what suits the first.
  [[nodiscard]] um::Bytes page() const { return page_; }
  /// The largest block of parameters or optimizer numbers, of which those who initialise, save or
  /// load it need all parts that move at once, between steps.
  [[nodiscard]] um::Bytes state_at_once() const;
  /// Number `index` of training_steps().
  [[nodiscard]] StepToPlan training_to_plan(std::size_t index) const;
  [[nodiscard]] StepToPlan training_to_plan() const {
    return training_to_plan(training_.size() - 1);
  }

  /// What is always near besides the blocks of the steps.
  [[nodiscard]] um::Bytes beside() const { return beside_; }
  /// What training and evaluation together need; `largest_task` is a task of the training step that
  /// needs most.
  [[nodiscard]] const prefetch::NearNeed& need() const { return need_; }
  /// That step.
  [[nodiscard]] StepToPlan neediest_to_plan() const { return training_to_plan(neediest_); }

  /// The budget under which each step is to be planned when the whole run has `budget`. The steps
  /// share near memory: each keeps something of its own always near, the pool of pages is common.
  [[nodiscard]] um::Bytes training_budget(um::Bytes budget) const;
  [[nodiscard]] um::Bytes evaluation_budget(um::Bytes budget) const;
  /// The budget of a whole run whose step training() was planned under `training_budget`.
  [[nodiscard]] um::Bytes run_budget(um::Bytes training_budget) const;

 private:
  Workload(const EvaluationOnly& only, Step evaluation, const SizeModel& size_model);
  // Steps in a row of each kind, one kind after the other.
  Workload(const prefetch::SubBatches& batches, std::vector<RepeatedStep> training, Step evaluation,
           const SizeModel& size_model);
  Workload(const prefetch::SubBatches& batches, ShardSteps training, Step evaluation,
           um::Bytes beside, const SizeModel& size_model);

  // What one step keeps always near, and needs.
  struct Near {
    um::Bytes always;
    um::Bytes small;  // of it, all but state
    prefetch::NearNeed need;
  };
  [[nodiscard]] Near near_of(const prefetch::TaskGraph& graph) const;

  prefetch::SubBatches batches_;
  std::vector<RepeatedStep> training_;
  std::vector<std::size_t> sequence_;
  um::Bytes beside_;  // always near, besides what the steps know
  Step evaluation_;
  um::Bytes page_;
  std::vector<Near> training_near_;  // by index
  Near evaluation_near_;
  um::Bytes common_near_;  // what all together keep always near
  std::size_t neediest_ = 0;
  prefetch::NearNeed need_;
};

}  // namespace spillway
