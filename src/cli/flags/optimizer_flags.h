#pragma once

#include <optional>
#include <string>

#include "src/cli/flags/cli11.h"
#include "src/ops/training_operations.h"

namespace CLI {
class App;
}  // namespace CLI

namespace spillway::cli {

/// The flags that say how gradients change parameters.
struct OptimizerFlags {
  std::string name = "sgd";
  std::optional<float> momentum;  ///< default: 0.9, but 0 of rmsprop
  bool nesterov = false;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double alpha = 0.99;
  float epsilon = 1e-8F;
  float clip_norm = 0;
  std::optional<float> weight_decay;  ///< default: 0, but 0.01 of adamw
  bool decays_all = false;            ///< biases and norms, too

  /// --optimizer and --clip-norm, which the tasks of a step depend on, and so plans do.
  void add_choice_to(CLI::App& app);
  /// The others: what a step computes with, but neither its plan nor its time depends on.
  void add_rates_to(CLI::App& app);

  [[nodiscard]] OptimizerOptions options() const;
  /// Takes what `command` was not given from a training that goes on. Throws: um::Error when it was
  /// given another optimizer.
  void restore(const CLI::App& command, const OptimizerOptions& kept);
  /// Throws: CLI::ValidationError when `command` was given what its optimizer does not have.
  void expect_fitting(const CLI::App& command) const;
};

}  // namespace spillway::cli
