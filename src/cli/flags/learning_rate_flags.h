#pragma once

#include <cstddef>
#include <cstdint>

#include "src/cli/flags/cli11.h"
#include "src/ops/optimizer.h"
#include "src/train/learning_rate.h"

namespace CLI {
class App;
}  // namespace CLI

namespace spillway::cli {

/// The flags that say how fast is learned: --lr, --schedule and what schedules have.
struct LearningRateFlags {
  LearningRateOptions options;
  std::size_t rate_batch = 0;  ///< the batch that the rate is of; 0: any

  void add_to(CLI::App& command);
  /// Unless --lr is given, the rate that suits `optimizer`: PyTorch's 0.001 for Adam, else 0.01. It
  /// grows with `batch` where --lr-batch says so. To be called before restore(). Throws:
  /// CLI::ValidationError when it grows too large.
  void choose_rate(const CLI::App& command, const OptimizerOptions& optimizer, std::size_t batch);
  /// Takes what `command` was not given from a training that goes on.
  void restore(const CLI::App& command, const LearningRateOptions& kept);
  /// Throws: CLI::ValidationError when `command` was given what its schedule does not have, or not
  /// what it needs.
  void expect_fitting(const CLI::App& command) const;
};

}  // namespace spillway::cli
