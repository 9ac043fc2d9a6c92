#pragma once

#include <atomic>
#include <optional>
#include <string>

#include "nets/network.h"
#include "prefetch/plan.h"
#include "prefetch/profile.h"
#include "src/budget.h"
#include "src/checkpoint.h"
#include "src/cli/training_flags.h"
#include "src/data/dataset.h"
#include "src/plans.h"
#include "src/processor.h"
#include "src/workload.h"

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
  [[nodiscard]] Processor& processor() { return processor_; }
  [[nodiscard]] const Processor& processor() const { return processor_; }
  [[nodiscard]] const Workload& workload() const { return workload_; }
  [[nodiscard]] const prefetch::TaskGraph& graph() const { return workload_.training().graph; }
  [[nodiscard]] const prefetch::Profile& profile() const { return profile_; }
  [[nodiscard]] const Plans& plans() const { return plans_; }

  /// Nothing when the training is not saved.
  [[nodiscard]] const std::optional<CheckpointFolder>& folder() const { return folder_; }
  /// What its checkpoints belong to.
  [[nodiscard]] CheckpointKey checkpoint_key() const;

 private:
  void open_folder();
  void expect_budget_kept() const;
  void make_plan();
  [[nodiscard]] std::string plan_path() const;
  [[nodiscard]] um::Bytes find_limit(const std::optional<prefetch::Plan>& plan) const;
  [[nodiscard]] prefetch::Profile find_profile(um::Bytes limit);
  void expect_going_on() const;

  const TrainingFlags& flags_;
  const std::atomic<bool>& stop_;
  PlanRequest request_;
  nets::Network network_;
  DatasetPair data_;
  TrainOptions training_;
  Processor processor_;
  Workload workload_;
  std::optional<CheckpointFolder> folder_;
  prefetch::Profile profile_;
  Plans plans_;
};

}  // namespace spillway::cli
