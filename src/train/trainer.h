#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nets/network.h"
#include "prefetch/need.h"
#include "prefetch/plan.h"
#include "prefetch/profile.h"
#include "src/data/dataset.h"
#include "src/ops/execution_context.h"
#include "src/plan/memory_mode.h"
#include "src/plan/plans.h"
#include "src/plan/workload.h"
#include "src/step/step.h"
#include "src/train/checkpoint.h"
#include "src/train/checkpoint_folder.h"
#include "src/train/session.h"
#include "src/train/train.h"
#include "src/train/training_summary.h"
#include "um/bytes.h"
#include "um/error.h"
#include "um/nanoseconds.h"
#include "um/options.h"

namespace spillway {

/// Where tensors live.
struct MemoryOptions {
  /// "512MiB", "40%" (of what training all in near memory needs), "min", "min+20%" (of the way from
  /// the smallest that is possible to that need), or "auto".
  std::string budget = "auto";
  MemoryMode mode = MemoryMode::kManaged;
  um::ManagedOptions space;  ///< far memory, link and paging; its sizes are not looked at
};

/// How a step is planned.
struct PlanningOptions {
  std::string planner = "joint";
  bool may_recompute = true;
  std::string sub_batch = "off";  ///< "off", "auto", or the most samples of a sub-batch
  std::string plan_file;          ///< empty: a planner makes the plan
  std::string profile_file;       ///< empty: times are measured
};

/// Which file is about one step, where a batch of `batch` may run several: "plan" or "profile".
/// Nothing when the files go with the batch, as a Trainer needs it.
[[nodiscard]] std::optional<std::string_view> file_of_one_step(const PlanningOptions& planning,
                                                               std::size_t batch);

/// Where a training is saved, and whether it goes on from there.
struct CheckpointOptions {
  std::string folder;  ///< empty: it is not saved
  /// The last checkpoints that stay, at least 1. Where the newest does not verify, a training goes
  /// on from the one before.
  std::size_t keep = CheckpointFolder::kUsualKeep;
  /// Goes on with the plan of the checkpoint. Other options are those given: read_settings() tells
  /// which ones the checkpoint was made with.
  bool resume = false;
};

/// What to train, on which data, within which memory, and for how long.
struct TrainerOptions {
  nets::Network network;
  std::string data = "synthetic";  ///< as open_dataset() reads it, such as "idx:DIR"
  StepOptions step;                ///< the batch, the optimizer, the convolution algorithms
  MemoryOptions memory;
  PlanningOptions planning;
  TrainOptions training;  ///< `first_step` is not looked at
  CheckpointOptions checkpoint;
};

/// What a Trainer reports as it goes, to whoever listens: each may be empty.
struct TrainerEvents {
  std::function<void(double fraction)> on_measuring;  ///< so much of the tasks has been measured
  std::function<void(std::size_t tasks)> on_planning;
  std::function<void(std::uint64_t step, std::uint64_t epoch, const StepReport&)> on_step;
  std::function<void(std::uint64_t step, std::uint64_t epoch, const Evaluation&)> on_evaluation;
  /// A sentence that the user should know, though the training goes on: a checkpoint does not
  /// verify, and an older one is used.
  std::function<void(const std::string& sentence)> on_warning;
};

/// A training that was to go on has no steps left: all of them are in its checkpoint, which
/// verifies.
class NothingLeft final : public um::Error {
 public:
  NothingLeft(const std::string& sentence, std::uint64_t steps, std::string weights_sha256)
      : um::Error{sentence}, steps_{steps}, weights_sha256_{std::move(weights_sha256)} {}
  [[nodiscard]] std::uint64_t steps() const { return steps_; }
  /// As TrainingSummary has it.
  [[nodiscard]] const std::string& weights_sha256() const { return weights_sha256_; }

 private:
  std::uint64_t steps_;
  std::string weights_sha256_;
};

/// One training within a memory budget, from its data to its last checkpoint.
///
/// Thread safety: none; a stop may be requested from any thread.
class Trainer {
 public:
  /// Opens the data, measures the step on `context`, plans it, and fills the weights: with first
  /// values, or with those of the checkpoint. Throws: um::Error, one sentence for the user;
  /// NothingLeft before anything is measured; Interrupted when `stop` is requested, now or in
  /// run(), which ends the step under way first, and saves it where there is a folder.
  Trainer(ExecutionContext context, TrainerOptions options, TrainerEvents events = {},
          std::stop_token stop = {});
  /// The same, but opens the device only when the data are open: a mistake in the data set's name
  /// or files shows at once.
  Trainer(const std::function<ExecutionContext()>& open_context, TrainerOptions options,
          TrainerEvents events = {}, std::stop_token stop = {});

  /// Trains to the end, one pass over the data unless the options say otherwise. To be called once.
  /// Throws: as train() does, and um::Error when a checkpoint cannot be written.
  TrainingSummary run();

  [[nodiscard]] const TrainerOptions& options() const { return options_; }
  [[nodiscard]] const DatasetPair& data() const { return data_; }
  [[nodiscard]] const ExecutionContext& context() const { return context_; }
  [[nodiscard]] const Workload& workload() const { return *workload_; }
  [[nodiscard]] const Plans& plans() const { return plans_; }
  [[nodiscard]] const Session& session() const { return *session_; }
  /// The last of the steps of a batch, which updates the weights: its graph, times and plan.
  [[nodiscard]] const prefetch::TaskGraph& graph() const { return workload_->training().graph; }
  [[nodiscard]] const prefetch::Profile& profile() const { return profiles_.back(); }
  [[nodiscard]] const prefetch::Plan& plan() const { return plans_.training.back(); }

 private:
  void cut_batch();
  void make_plans_of_steps();
  void start();
  [[nodiscard]] std::function<void(std::uint64_t)> saving();
  void save(std::uint64_t step);
  void open_folder();
  void choose_checkpoint();
  void expect_budget_kept(std::span<const PlanOfFile> files) const;
  void expect_going_on() const;
  [[nodiscard]] std::vector<PlanOfFile> read_plans() const;
  [[nodiscard]] um::Bytes find_limit(const prefetch::Plan* plan) const;
  [[nodiscard]] std::vector<prefetch::Profile> find_profiles(um::Bytes limit);

  TrainerOptions options_;
  TrainerEvents events_;
  std::stop_token stop_;
  PlanRequest request_;
  DatasetPair data_;
  ExecutionContext context_;
  std::optional<Workload> workload_;  // of the whole batch until that is cut
  prefetch::NearNeed whole_need_;     // of the whole batch: what budgets are relative to
  std::optional<CheckpointFolder> folder_;
  CheckpointKey key_;                        // where there is a folder
  std::optional<ChosenCheckpoint> chosen_;   // what it goes on from
  std::vector<prefetch::Profile> profiles_;  // of the training steps
  Plans plans_;
  std::optional<Session> session_;
};

}  // namespace spillway
