#pragma once

#include <atomic>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "nets/network.h"
#include "prefetch/need.h"
#include "prefetch/plan.h"
#include "prefetch/profile.h"
#include "src/cli/train/training_flags.h"
#include "src/data/dataset.h"
#include "src/ops/execution_context.h"
#include "src/plan/budget.h"
#include "src/plan/plans.h"
#include "src/plan/workload.h"
#include "src/train/checkpoint.h"
#include "um/bytes.h"
#include "um/nanoseconds.h"

namespace spillway::cli {

/// Everything that a training needs before its first step: data, processor, checkpoint folder,
/// profile, plans.
class TrainingSetup {
 public:
  /// Reads, measures and plans. `flags` and `stop` must outlive it. Throws: um::Error, the sentence
  /// for the user; Interrupted when `stop` becomes true.
  TrainingSetup(const TrainingFlags& flags, const std::atomic<bool>& stop);

  [[nodiscard]] const PlanRequest& request() const { return request_; }
  [[nodiscard]] const nets::Network& network() const { return network_; }
  [[nodiscard]] const DatasetPair& data() const { return data_; }
  /// The flags', with the learning rate's schedule for so long a training.
  [[nodiscard]] const TrainOptions& training() const { return training_; }
  [[nodiscard]] ExecutionContext& context() { return context_; }
  [[nodiscard]] const ExecutionContext& context() const { return context_; }
  [[nodiscard]] const Workload& workload() const { return *workload_; }
  /// The step that updates, its times, and its plan.
  [[nodiscard]] const prefetch::TaskGraph& graph() const { return workload_->training().graph; }
  [[nodiscard]] const prefetch::Profile& profile() const { return profiles_.back(); }
  [[nodiscard]] const prefetch::Plan& plan() const { return plans_.training.back(); }
  [[nodiscard]] const Plans& plans() const { return plans_; }
  /// How long a batch should take by its plans.
  [[nodiscard]] um::Nanoseconds predicted_step() const;

  /// Nothing when the training is not saved.
  [[nodiscard]] const std::optional<CheckpointFolder>& folder() const { return folder_; }
  /// What its checkpoints belong to.
  [[nodiscard]] CheckpointKey checkpoint_key() const;

 private:
  void open_folder();
  void expect_budget_kept(std::span<const PlanOfFile> files) const;
  void cut_batch();
  void make_plans_of_steps();
  [[nodiscard]] std::vector<PlanOfFile> read_plans() const;
  [[nodiscard]] um::Bytes find_limit(const prefetch::Plan* plan) const;
  [[nodiscard]] std::vector<prefetch::Profile> find_profiles(um::Bytes limit);
  void expect_going_on() const;

  const TrainingFlags& flags_;
  const std::atomic<bool>& stop_;
  PlanRequest request_;
  nets::Network network_;
  DatasetPair data_;
  TrainOptions training_;
  ExecutionContext context_;
  std::optional<Workload> workload_;  // of the whole batch until that is cut
  prefetch::NearNeed whole_need_;     // of the whole batch: what budgets are relative to
  std::optional<CheckpointFolder> folder_;
  std::vector<prefetch::Profile> profiles_;  // of the training steps
  Plans plans_;
};

}  // namespace spillway::cli
