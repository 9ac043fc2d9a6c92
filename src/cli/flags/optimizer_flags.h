#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "src/cli/flags/cli11.h"
#include "src/ops/learning_rate.h"
#include "src/ops/optimizers.h"
#include "src/train/checkpoint/hyper_parameters.h"

namespace spillway::cli {

/// The flags that say how gradients change parameters.
struct OptimizerFlags {
  std::string name = "sgd";
  GivenHyperParameters given;
  std::optional<float> clip_norm;
  std::optional<bool> decays_all;          ///< biases and norms, too
  std::optional<OptimizerOptions> kept{};  ///< of a training that goes on

  /// --optimizer and --clip-norm, which the tasks of a step depend on, and so plans do.
  void add_choice_to(CLI::App& app);
  /// The others: what a step computes with, but neither its plan nor its time depends on.
  void add_rates_to(CLI::App& app);

  [[nodiscard]] OptimizerOptions options() const;
  /// Takes what `command` was not given from a training that goes on. Throws: um::Error when it was
  /// given another optimizer, or another number of state tensors.
  void restore(const CLI::App& command, const OptimizerOptions& options);
  /// Throws: CLI::ValidationError when it was given what its optimizer does not have.
  void expect_fitting() const;
};

/// The flags that say how fast is learned: --lr, --schedule and what schedules have.
struct LearningRateFlags {
  LearningRateOptions options;
  std::size_t rate_batch = 0;  ///< the batch that the rate is of; 0: any

  void add_to(CLI::App& command);
  /// Unless --lr is given, the default rate of `optimizer`. It grows with `batch` where --lr-batch
  /// says so. To be called before restore(). Throws:
  /// CLI::ValidationError when it grows too large.
  void choose_rate(const CLI::App& command, const OptimizerOptions& optimizer, std::size_t batch);
  /// Takes what `command` was not given from a training that goes on.
  void restore(const CLI::App& command, const LearningRateOptions& kept);
  /// Throws: CLI::ValidationError when `command` was given what its schedule does not have, or not
  /// what it needs.
  void expect_fitting(const CLI::App& command) const;
};

}  // namespace spillway::cli
