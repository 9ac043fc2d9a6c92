#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "src/cli/flags/cli11.h"
#include "src/cli/flags/device_flags.h"
#include "src/cli/flags/memory_flags.h"
#include "src/cli/flags/optimizer_flags.h"
#include "src/cli/flags/plan_flags.h"
#include "src/cli/flags/workload_flags.h"
#include "src/cli/train/image_flags.h"
#include "src/cli/train/launcher_flags.h"
#include "src/ops/initial_values.h"
#include "src/train/checkpoint/checkpoint.h"
#include "src/train/checkpoint/state.h"
#include "src/train/trainer.h"

namespace spillway::cli {

/// The data of a training without --data.
inline constexpr const char* kGeneratedData = "synthetic";

/// Flags for the initial parameters of a training.
struct InitialFlags {
  std::string weights;  ///< file of initial parameters; empty: random ones
  bool has_new_head = false;
  std::optional<Initialisation> rule;  ///< default: rule_for()
  bool has_zero_gamma = false;

  void add_to(CLI::App& command, const char* group);
  /// A resumed training (`goes_on`) keeps its checkpoint's head, even with --new-head.
  /// Throws: CLI::ValidationError when a new head is given without a file, or a rule has nothing to
  /// initialise.
  void expect_fitting(bool goes_on) const;
  /// Returns the given rule, or the usual one of this network.
  [[nodiscard]] Initialisation rule_for(const std::string& network) const;
  /// Returns the weights in the network's ONNX file. None for other networks, with other weights or
  /// a rule, or in a resumed training (`goes_on`). Throws: um::Error.
  [[nodiscard]] TensorSource values_of(const OpenedNetwork& network, bool goes_on) const;

 private:
  void add_drawing_to(CLI::App& command, const char* group);
};

/// Flags of `spillway train`.
struct TrainingFlags {
  WorkloadFlags workload;
  DeviceFlags device;
  MemoryFlags memory{.far = "auto"};
  PlanFlags plan;
  MicroBatchFlags micro_batches;
  std::string plan_file;        ///< empty: a planner makes the plan
  std::string profile_file;     ///< empty: measure times
  std::string kept_far_folder;  ///< of a checkpoint of the host; empty: none, or --far is given
  CacheOption cache;
  bool is_dry_run = false;
  std::string data = kGeneratedData;
  bool has_data = false;  ///< the user named them, or a recipe did
  ImageFlags images;
  std::string tokenizer;  ///< empty: tokens of a text are bytes
  InitialFlags initial;
  std::size_t train_samples = 0;
  std::uint64_t patience = 0;
  std::string confusion;  ///< file for the last evaluation's confusion matrix; empty: none
  LearningRateFlags learning_rate;
  TrainOptions train;
  CheckpointOptions checkpoint;
  std::string resume = "false";  ///< empty or "true": resume; "auto": resume if possible
  LauncherFlags launcher;

  void add_to(CLI::App& command);

  /// Decides whether the training resumes, and fills in what `command` was not given. A resumed
  /// training keeps its settings except for flags that are given again. Throws: um::Error when the
  /// checkpoint is missing, damaged or has other micro-batches; CLI::Error when flags contradict
  /// each other.
  void complete(const CLI::App& command);
  /// Takes the folder of the far file from the checkpoint, or notes that a GPU leaves it behind.
  /// Call it when the device is chosen.
  void restore_far_folder();

  /// Returns the library's options for a command line of `arguments`. Throws: um::Error for an
  /// unknown network, or a confusion matrix of a network with more than one label per image.
  [[nodiscard]] TrainerOptions trainer(const std::string& arguments) const;

 private:
  [[nodiscard]] PlanningOptions planning() const;
  [[nodiscard]] CheckpointOptions written_checkpoint() const;
  void choose_classes(const CLI::App& command);
  // Throws where a flag would have no effect.
  void expect_effects() const;
  void choose_beginning();
  void restore_settings(const CLI::App& command);
  void restore_planning(const CLI::App& command, const KeptPlanning& kept);
  void restore_micro_batches(std::optional<std::size_t> kept);
  void restore_dropout(std::optional<float> kept);
  void restore_state(const CLI::App& command, const KeptSettings& kept);
  void restore_evaluations(const CLI::App& command, const EvaluationRule& kept);
  void add_training_to(CLI::App& command);
  void add_length_to(CLI::App& command);
  void add_evaluation_to(CLI::App& command);
  void add_checkpoint_to(CLI::App& command);
  void add_files_to(CLI::App& command);
};

}  // namespace spillway::cli
