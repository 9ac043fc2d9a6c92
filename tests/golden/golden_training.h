#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "src/ops/training_operations.h"
#include "src/train/session.h"
#include "tests/golden/golden_file.h"
#include "tests/src/network_in_memory.h"

namespace spillway::test {

/// Makes a network for a training on some device, with some memory and choice of algorithms.
using MakeNetwork =
    std::function<std::unique_ptr<NetworkInMemory>(nets::Network network, StepOptions options)>;

/// The training of a golden file.
class GoldenTraining {
 public:
  GoldenTraining(const GoldenFile& golden, const OptimizerOptions& optimizer,
                 const MakeNetwork& make);

  StepReport train(std::uint64_t step) { return train(step, golden_.learning_rate); }
  StepReport train(std::uint64_t step, float learning_rate);
  StepReport evaluate(std::uint64_t step);
  [[nodiscard]] std::vector<BlockNumbers> state();
  [[nodiscard]] const prefetch::Plan& plan() const { return net_->training_plan(); }
  [[nodiscard]] const prefetch::TaskGraph& graph() const { return net_->training_step().graph; }

 private:
  const GoldenFile& golden_;
  std::unique_ptr<NetworkInMemory> net_;
};

/// Tolerated distance from PyTorch's numbers: blocks relative to their norm, losses relative to the
/// first loss.
struct GoldenTolerance {
  double one_step;
  double losses;      ///< over ten steps
  double statistics;  ///< running statistics after ten steps
};

/// Checks the first step's loss, gradients and running statistics.
void expect_golden_gradients(const GoldenFile& golden, const MakeNetwork& make,
                             const GoldenTolerance& tolerance);

/// Checks ten losses, the running statistics after them, and an evaluation.
void expect_golden_losses(const GoldenFile& golden, const MakeNetwork& make,
                          const GoldenTolerance& tolerance);

/// Checks ten losses with each of the file's other optimizers.
void expect_golden_losses_with_others(const GoldenFile& golden, const MakeNetwork& make,
                                      const GoldenTolerance& tolerance);

}  // namespace spillway::test
