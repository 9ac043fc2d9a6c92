#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "src/cli/flags/cli11.h"
#include "src/cli/flags/device_flags.h"
#include "src/cli/flags/memory_flags.h"
#include "src/cli/flags/plan_flags.h"
#include "src/cli/terminal/terminal.h"
#include "src/io/data/dataset.h"
#include "src/io/data/image_files.h"
#include "src/train/evaluator.h"

namespace spillway::cli {

/// The samples of a split and, for data sets of files, its broken files.
struct JudgedData {
  std::unique_ptr<Dataset> samples;
  std::shared_ptr<BrokenFiles> broken;
};

/// Flags that `spillway evaluate` and `spillway predict` share: a checkpoint, data, and how to run.
struct EvaluationFlags {
  std::string checkpoint;
  bool is_best = false;
  std::string data;  ///< empty: the training's data
  std::string split = "test";
  std::string tokenizer;
  std::size_t batch = 0;  ///< 0: the training's batch
  DeviceFlags device;
  MemoryFlags memory{.far = "auto"};
  PlanFlags plan;
  CacheOption cache;
  std::string json;
  bool uses_weights = false;     ///< even if the checkpoint has averages
  std::size_t most_samples = 0;  ///< number of samples to judge; 0: unknown
  bool gives_logits = false;     ///< StepOptions::gives_logits

  void add_to(CLI::App& command);

  /// Opens the checkpoint. Throws: um::Error.
  [[nodiscard]] TrainedNetwork open_network() const;
  /// Opens the data that the user named, or the training's. If all of them will be read, looks at
  /// their files first as `look` says. Throws: um::Error, also when classes differ from the
  /// training's or expect_whole_files() throws.
  [[nodiscard]] JudgedData open_data(const TrainedNetwork& trained,
                                     const std::optional<LookOptions>& look = {}) const;
  /// Prepares the network to judge `samples`, which takes time. Throws: um::Error; Interrupted.
  [[nodiscard]] std::unique_ptr<Evaluator> make_evaluator(TrainedNetwork trained,
                                                          const Dataset& samples,
                                                          ProgressLine& progress,
                                                          std::stop_token stop) const;
  /// Prints what is judged, on which device and within which budget.
  void describe(const Evaluator& evaluator, const Dataset& samples) const;

 private:
  [[nodiscard]] TrainerOptions options_for(const TrainedNetwork& trained) const;
  void add_data_to(CLI::App& command);
};

/// Prints the files of `data` that turned out to be broken since the last call.
void tell_broken(const JudgedData& data);

}  // namespace spillway::cli
