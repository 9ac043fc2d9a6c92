#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "src/ops/backend.h"
#include "src/program/step.h"
#include "tests/src/network_in_memory.h"

namespace spillway::test {

/// The losses of a training with another optimizer.
struct OtherOptimizer {
  std::string name;
  OptimizerOptions options;
  float learning_rate = 0;
  std::vector<double> losses;
};

/// PyTorch's results for the network tests/golden/<name>.net: <name>.json, written by
/// tools/golden/make_golden.
struct GoldenFile {
  using Numbers = std::vector<double>;
  using Blocks = std::map<std::string, Numbers>;  ///< by name, in the order of src/ops/parameter.h

  std::string name;
  int salt = 0;  ///< part of the names of random sequences
  std::size_t batch = 0;
  std::uint64_t batches = 0;  ///< number of different batches, used in turn
  float learning_rate = 0;
  SgdOptions sgd;
  std::vector<OtherOptimizer> others;
  Numbers losses;               ///< of the first steps
  Blocks gradients;             ///< of the loss in the first step
  Blocks running_after_first;   ///< running statistics after the first step
  Blocks running_after_last;    ///< running statistics after all steps
  double evaluation_loss = 0;   ///< mean loss of the next batch after all steps
  double evaluation_correct{};  ///< correct predictions in that batch

  /// Throws: std::exception when the file is malformed.
  [[nodiscard]] static GoldenFile read(const std::string& name);

  /// Returns the initial values of the state blocks of `step`, a training step.
  [[nodiscard]] std::vector<BlockNumbers> initial_state(const Step& step) const;
  /// Makes the batch of step `step`.
  [[nodiscard]] Batch make_batch(const nets::Network& network, std::uint64_t step) const;
};

}  // namespace spillway::test
