#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "nets/network.h"
#include "prefetch/task_graph.h"
#include "src/ops/backend.h"
#include "src/ops/operation.h"
#include "src/ops/optimizer.h"

namespace spillway {

/// Which algorithms convolutions may use.
enum class ConvolutionAlgorithm {
  kAuto,     ///< whichever the planner chooses
  kDirect,   ///< the baseline everywhere
  kWinograd  ///< Winograd wherever the backend has it, the baseline elsewhere
};

struct StepOptions {
  std::size_t batch = 1;
  ConvolutionAlgorithm convolution = ConvolutionAlgorithm::kAuto;
  OptimizerOptions optimizer;
};

/// The kernel call of one task: `operands` in the order of the operation's Reads and Writes.
struct Launch {
  Operation operation;
  std::vector<prefetch::DataId> operands;
};

enum class StateRole {
  kParameters,  ///< trained
  kOptimizer,   ///< the optimizer's memory, beside each parameter block; zero at first
  kStatistics   ///< batch norm's running statistics
};

/// A block that outlives the step. Names are unique: "conv1", "conv1.momentum" (of SGD),
/// "conv1.exp_avg" and "conv1.exp_avg_sq" (Adam's first and second moment), "bn1.running".
struct StateBlock {
  prefetch::DataId id;
  std::string name;
  ParameterSpec spec;
  StateRole role;
};

/// One step of a network: the task graph that planners see and the launches that the executor runs,
/// from one source, task by task.
struct Step {
  prefetch::TaskGraph graph;
  std::vector<Launch> launches;   ///< by TaskId
  std::vector<StateBlock> state;  ///< in layer order
  /// Where its batch waits for it, if it does: one of those that outlive the step.
  std::optional<prefetch::DataId> staged;
  prefetch::DataId result{};  ///< two floats, see SoftmaxCrossEntropyTrain or -Evaluate
  /// Of parameters, where they outlive the step, in the order of `graph`: of sub-steps
  /// (sub_step.h).
  std::vector<prefetch::DataId> gradients;
};

/// Loads a batch, goes forward, backward, and updates each parameter block as soon as its gradient
/// is complete. Throws: um::Error when layers have names of which two parts of the step would get
/// one: "a.momentum" is the momentum of a layer "a".
[[nodiscard]] Step make_training_step(const nets::Network& network, const SizeModel& size_model,
                                      const StepOptions& options);

/// Loads a batch and goes forward as in inference: running statistics, no dropout, no auxiliary
/// heads. Its state blocks are the parameters and statistics of the training step, by the same
/// names, but for those of auxiliary heads. Throws: likewise.
[[nodiscard]] Step make_evaluation_step(const nets::Network& network, const SizeModel& size_model,
                                        const StepOptions& options);

/// Lets plans send parameters and the optimizer's numbers far. Running statistics and a staged batch
/// stay near.
void let_state_move(Step& step);

/// Plans and checkpoints know blocks and tasks by their names, which are made of the layers'.
/// Throws: um::Error when two of either have the same.
void expect_unique_names(const Step& step, const nets::Network& network);

}  // namespace spillway
