#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>

#include "nets/network.h"
#include "prefetch/planner.h"
#include "src/ops/backend.h"
#include "src/plan/budget.h"
#include "src/program/micro_batches.h"
#include "src/program/passes.h"
#include "src/program/step.h"
#include "um/bytes.h"

namespace spillway {

/// A network made ready to be planned: its steps, the page in which their tensors move, and the
/// near memory they need. Stays where it is made: plans and layouts point into it.
class Workload {
 public:
  /// Returns near memory that a training step takes besides its blocks.
  using NearMemory = std::function<um::Bytes(const Step& training)>;

  /// Trains `batches`, or the batch as one. Evaluation takes as many samples at a time as a
  /// micro-batch has, or as make_evaluation_step() can. Throws: um::Error for steps that cannot be
  /// planned, and what make_program(), make_evaluation_step() and apply() throw.
  Workload(const nets::Network& network, const SizeModel& size_model, const StepOptions& options,
           const std::optional<MicroBatches>& batches = {}, const Features& features = {},
           const NearMemory& beside = {});
  /// Evaluation alone: its step stands in for the training's too, so that there is neither a
  /// gradient nor anything of an optimizer.
  [[nodiscard]] static std::unique_ptr<const Workload> of_evaluation(const nets::Network& network,
                                                                     const SizeModel& size_model,
                                                                     const StepOptions& options);
  /// The same steps with other features: apply(). Null where the far side is to run updates and may
  /// run none of them.
  [[nodiscard]] std::unique_ptr<const Workload> with(const SizeModel& size_model,
                                                     const Features& features) const;
  Workload(const Workload&) = delete;
  Workload& operator=(const Workload&) = delete;
  ~Workload() = default;

  /// The step that a batch runs: make_program(), apply().
  [[nodiscard]] const Step& training() const { return *steps_.training; }
  [[nodiscard]] const Step& evaluation() const { return *steps_.evaluation; }
  [[nodiscard]] const Features& features() const { return features_; }
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
  // Shared by workloads of the same steps.
  struct Steps {
    std::shared_ptr<const Step> training;
    std::shared_ptr<const Step> evaluation;
  };
  Workload(const MicroBatches& batches, Steps plain, const Features& features,
           const NearMemory& beside, const SizeModel& size_model);
  [[nodiscard]] static Steps make_steps(const nets::Network& network, const SizeModel& size_model,
                                        const StepOptions& options, const MicroBatches& batches);
  [[nodiscard]] static Steps with_features(const Steps& plain, const Features& features,
                                           const SizeModel& size_model);

  // What one step keeps always near, and needs.
  struct Near {
    um::Bytes always;
    um::Bytes small;  // of it, all but state
    prefetch::NearNeed need;
  };
  [[nodiscard]] Near near_of(const prefetch::TaskGraph& graph) const;

  MicroBatches batches_;
  Features features_;
  NearMemory near_memory_;
  Steps plain_;  // without features
  Steps steps_;
  um::Bytes beside_;  // always near, besides what the steps know
  um::Bytes page_;
  Near training_near_;
  Near evaluation_near_;
  um::Bytes common_near_;  // what both together keep always near
  prefetch::NearNeed need_;
};

}  // namespace spillway
