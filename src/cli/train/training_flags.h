#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "src/cli/flags/cli11.h"
#include "src/cli/flags/device_flags.h"
#include "src/cli/flags/learning_rate_flags.h"
#include "src/cli/flags/memory_flags.h"
#include "src/cli/flags/plan_flags.h"
#include "src/cli/flags/sub_batch_flag.h"
#include "src/cli/flags/workload_flags.h"
#include "src/cli/train/image_flags.h"
#include "src/cli/train/initial_flags.h"
#include "src/cli/train/shard_flags.h"
#include "src/train/checkpoint.h"
#include "src/train/trainer.h"

namespace CLI {
class App;
}  // namespace CLI

namespace spillway::cli {

/// What `spillway train` is asked for.
struct TrainingFlags {
  WorkloadFlags workload;
  DeviceFlags device;
  MemoryFlags memory;
  PlanFlags plan;
  SubBatchOption sub_batch;
  std::string plan_file;     ///< empty: a planner makes the plan
  std::string profile_file;  ///< empty: times are measured
  std::string data = "synthetic";
  ImageFlags images;
  std::string tokenizer;  ///< empty: bytes are the tokens of a text
  InitialFlags initial;
  std::size_t train_samples = 0;
  std::uint64_t patience = 0;
  std::string confusion;  ///< file of the last evaluation's confusion matrix; empty: none
  LearningRateFlags learning_rate;
  TrainOptions train;
  CheckpointOptions checkpoint;
  std::string resume = "false";  ///< empty or "true": it goes on; "auto": where it can
  ShardFlags shards;

  void add_to(CLI::App& command);

  /// Says whether the training goes on, and fills in what `command` was not given. A training that
  /// goes on keeps its settings, but for those that are given anew. Throws: um::Error when there is
  /// no checkpoint, it is damaged, or cuts its batch otherwise; CLI::Error when flags do not fit
  /// each other.
  void complete(const CLI::App& command);

  /// What the library is asked for by a command line of `arguments`. Throws: um::Error when there
  /// is no such network, or of an image it says more than a class, which no confusion matrix is of.
  [[nodiscard]] TrainerOptions trainer(const std::string& arguments) const;

  /// Throws: um::Error when files are given that are of one step, and a batch may run several.
  void expect_files_of_all_steps() const;

 private:
  [[nodiscard]] PlanningOptions planning() const;
  void choose_classes(const CLI::App& command);
  // Throws where a flag would do nothing.
  void expect_effects() const;
  void choose_beginning();
  void restore_settings(const CLI::App& command);
  void restore_sub_batch(std::optional<std::size_t> kept, bool is_given);
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
