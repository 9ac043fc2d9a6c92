#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "nets/network.h"
#include "src/io/data/image_folder.h"
#include "src/io/data/open_dataset.h"
#include "src/ops/backend.h"
#include "src/ops/initial_values.h"
#include "src/plan/micro_batch_choice.h"
#include "src/plan/plans.h"
#include "src/program/micro_batches.h"
#include "src/program/step.h"
#include "src/run/step_times.h"
#include "src/train/checkpoint/checkpoint.h"
#include "src/train/checkpoint/checkpoint_folder.h"
#include "src/train/checkpoint/state.h"
#include "src/train/data_parallel/rank_options.h"
#include "src/train/evaluation.h"
#include "src/train/train.h"
#include "um/options.h"

namespace spillway {

/// Where tensors live.
struct MemoryOptions {
  /// "512MiB", "40%" (of what training all in near memory needs), "min", "min+20%" (of the way from
  /// the smallest that is possible to that need), or "auto".
  std::string budget = "auto";
  std::optional<MemoryMode> mode;  ///< nullopt: what suits the device, choose_memory()
  um::ManagedOptions space;        ///< far memory, link and paging; its sizes are not looked at
  /// Returns the folder of a far file of this size. Called where near and far memory are the same
  /// RAM, which has no room for both. Empty: far memory stays in RAM, as that of several ranks
  /// does.
  std::function<std::string(um::Bytes far)> find_far_folder;
};

/// How a step is planned.
struct PlanningOptions {
  std::string planner = "joint";
  bool may_recompute = true;
  StateRule state = StateRule::kAuto;     ///< where weights and the optimizer's numbers may be
  UpdateRule update = UpdateRule::kAuto;  ///< which side updates those that are far
  /// How batches are cut. Several ranks have at least one micro-batch each.
  MicroBatchChoice micro_batches;
  std::string plan_file;  ///< empty: a planner makes the plan
  TimesOptions times;     ///< of tasks
};

/// Where a training is saved, and whether it goes on from there.
struct CheckpointOptions {
  std::string folder;  ///< empty: it is not saved
  /// The last checkpoints that stay, at least 1. Where the newest does not verify, a training goes
  /// on from the one before.
  std::size_t keep = CheckpointFolder::kUsualKeep;
  bool keep_best = false;  ///< the checkpoint of the best evaluation stays, too
  /// Goes on with the plan of the checkpoint. Other options are those given: read_settings() tells
  /// which ones the checkpoint was made with.
  bool resume = false;
  bool only_looks = false;  ///< nothing is going to be trained: its files stay as they are
};

/// Which parameters a training begins with.
struct InitialOptions {
  Initialisation rule = Initialisation::kXavier;  ///< of parameters that are drawn
  bool has_zero_gamma = false;                    ///< of the last batch norm of each residual block
  /// A safetensors file of Hugging Face's or torchvision's, or a folder of such, to take them from
  /// (WeightFile); empty: they are drawn. It does not go with CheckpointOptions::resume.
  std::string weights;
  bool has_new_head = false;  ///< the last layer of `weights` may be of another size: it is drawn
  /// Where they and running statistics come from instead, whose arrays it may leave as they are
  /// drawn; empty: from nowhere. It is not asked where a training goes on.
  TensorSource values;
};

/// What to train, on which data, within which memory, and for how long.
struct TrainerOptions {
  nets::Network network;
  std::string data = "synthetic";  ///< as open_dataset() reads it, such as "idx:DIR"
  std::string tokenizer;           ///< folder of byte pairs for "text:FILE"; empty: bytes
  ImageOptions images;             ///< of "images:DIR"
  bool only_evaluates = false;     ///< PlannedSteps are of evaluation alone
  std::size_t train_samples = 0;   ///< learn from the first so many alone; 0: from all
  /// Evaluations in a row without a better one that end the training; 0: it goes on.
  std::uint64_t patience = 0;
  /// The batch, the optimizer, the convolution algorithms; neither `mixes_labels` nor, of a
  /// training, `has_byte_images` is looked at.
  StepOptions step;
  MemoryOptions memory;
  PlanningOptions planning;
  TrainOptions training;
  InitialOptions initial;
  CheckpointOptions checkpoint;
  /// The ranks that train together; `step.batch` is the batch of all of them. Rank zero alone reads
  /// and writes checkpoints.
  RankOptions ranks;
};

/// Returns options with what follows from the others filled in. Throws: um::Error, one sentence for
/// the user, where they do not go together.
[[nodiscard]] TrainerOptions checked_options(TrainerOptions options);

/// What a checkpoint keeps of them, of a training on `context` whose batches are cut into
/// `batches`.
[[nodiscard]] KeptSettings kept_settings(const TrainerOptions& options,
                                         const ExecutionContext& context,
                                         const MicroBatches& batches);

/// How to open data for the network of `options`, in batches of `batch`.
[[nodiscard]] DatasetOptions dataset_options(const TrainerOptions& options, std::size_t batch);

/// Batch norms whose gamma begins as 0, by name. Throws: um::Error where some are wanted and there
/// are none.
[[nodiscard]] std::vector<std::string> zeroed_norms(const TrainerOptions& options);

/// What a Trainer reports as it goes, to whoever listens: each may be empty.
struct TrainerEvents {
  /// So many of the files of the data have been looked at, where that takes longer than a moment.
  std::function<void(double fraction)> on_looking;
  std::function<void(double fraction)> on_measuring;  ///< so much of the tasks has been measured
  std::function<void(std::size_t tasks)> on_planning;
  std::function<void(std::uint64_t step, std::uint64_t epoch, const StepReport&)> on_step;
  std::function<void(std::uint64_t step, std::uint64_t epoch, const Evaluation&)> on_evaluation;
  /// The training ends before its last step: TrainerOptions::patience.
  std::function<void(std::uint64_t step, const BestEvaluation& best)> on_early_stop;
  /// A sentence that the user should know, though the training goes on: a checkpoint does not
  /// verify, and an older one is used.
  std::function<void(const std::string& sentence)> on_warning;
};

}  // namespace spillway
