#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "nets/network.h"
#include "src/cli/flags/cli11.h"
#include "src/cli/flags/device_flags.h"
#include "src/cli/flags/memory_flags.h"
#include "src/cli/flags/plan_flags.h"
#include "src/cli/terminal/progress_line.h"
#include "src/data/broken_files.h"
#include "src/data/dataset.h"
#include "src/evaluate/evaluator.h"

namespace CLI {
class App;
}  // namespace CLI

namespace spillway::cli {

/// The samples of a split, and which of its files cannot be read, where it is made of files.
struct JudgedData {
  std::unique_ptr<Dataset> samples;
  std::shared_ptr<BrokenFiles> broken;
};

/// What `spillway evaluate` and `spillway predict` have in common: a checkpoint, data, and how to
/// run.
struct EvaluationFlags {
  std::string checkpoint;
  bool is_best = false;
  std::string data;  ///< empty: what the network was trained on
  std::string split = "test";
  std::string tokenizer;
  std::size_t batch = 0;  ///< 0: that of the training
  DeviceFlags device;
  MemoryFlags memory;
  PlanFlags plan;
  std::string json;
  bool uses_weights = false;     ///< of a checkpoint with averages, too
  std::size_t most_samples = 0;  ///< there are so many to judge; 0: nobody knows
  bool gives_logits = false;     ///< StepOptions::gives_logits

  void add_to(CLI::App& command);

  /// Opens the checkpoint. Throws: um::Error.
  [[nodiscard]] TrainedNetwork open_network() const;
  /// The data as the user named it, or the training's. Where all of it is going to be read, it is
  /// looked at as `look` says. Throws: um::Error, also where its classes are not those of the
  /// training, or expect_whole_files() does.
  [[nodiscard]] JudgedData open_data(const TrainedNetwork& trained,
                                     const std::optional<LookOptions>& look = {}) const;
  /// Makes the network ready to judge `samples`, which takes time. Throws: um::Error; Interrupted.
  [[nodiscard]] std::unique_ptr<Evaluator> make_evaluator(TrainedNetwork trained,
                                                          const Dataset& samples,
                                                          ProgressLine& progress,
                                                          std::stop_token stop) const;

 private:
  [[nodiscard]] TrainerOptions options_for(const TrainedNetwork& trained) const;
  void add_data_to(CLI::App& command);
};

/// Tells which files of `data` turned out to be broken since the last call.
void tell_broken(const JudgedData& data);

/// Tells what is judged on which device, within which budget.
void describe(const Evaluator& evaluator, const Dataset& data);

}  // namespace spillway::cli
