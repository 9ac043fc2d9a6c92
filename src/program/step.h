#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "nets/network.h"
#include "prefetch/task_graph.h"
#include "src/ops/backend.h"
#include "src/ops/operation.h"
#include "src/ops/training_operations.h"
#include "um/bytes.h"

namespace spillway {

/// Which algorithms convolutions may use.
enum class ConvolutionAlgorithm {
  kAuto,     ///< whichever the planner chooses
  kDirect,   ///< the baseline everywhere
  kWinograd  ///< Winograd wherever the backend has it, the baseline elsewhere
};

/// Which kernels attention may use.
enum class AttentionAlgorithm {
  kAuto,  ///< whichever the planner chooses, where it may for convolutions; else our own
  kOwn,   ///< our own
  kCudnn  ///< the one of cuDNN's that it expects to be the fastest
};

struct StepOptions {
  std::size_t batch = 1;
  ConvolutionAlgorithm convolution = ConvolutionAlgorithm::kAuto;
  AttentionAlgorithm attention = AttentionAlgorithm::kAuto;
  OptimizerOptions optimizer;
  float label_smoothing = 0;     ///< of all losses in training, below 1
  bool mixes_labels = false;     ///< batches to learn from have MixedLabels, one for each image
  bool has_byte_images = false;  ///< batches have Batch::bytes
  /// Of the exponential moving average of parameters that a training step keeps beside each block
  /// ("conv1.average"): average += (1 - decay) (parameters - average) after each update. 0: none.
  double average_decay = 0;
  /// Layers, by name, with * and ? for any letters, whose parameters stay as they are: there is no
  /// gradient of them, no update, and nothing that an optimizer keeps.
  std::vector<std::string> frozen;
  /// A linear layer whose parameters have more than twice these bytes is updated in parts of at
  /// most so many: their update takes the parameters and a part each of the gradient and of what
  /// the optimizer keeps, and the gradient's part dies at once. VGG-16's first linear layer has 392
  /// MiB of parameters; Adam would need four times that at once. Parts of less cost time: each is a
  /// matrix product and an update of its own. The same wherever the state is: what is summed in
  /// another shape may round otherwise.
  um::Bytes largest_update{32ULL << 20U};
  /// Of an evaluation: its result has the logits of images with one label each, too.
  bool gives_logits = false;
};

/// Returns the index of a block in TaskGraph::data.
[[nodiscard]] constexpr std::size_t index_of(prefetch::DataId id) {
  return static_cast<std::size_t>(id);
}

/// The kernel call of one task: `operands` in the order of the operation's Reads and Writes.
struct Launch {
  Operation operation;
  std::vector<prefetch::DataId> operands;
};

enum class StateRole {
  kParameters,  ///< trained
  kOptimizer,   ///< the optimizer's memory, beside each parameter block; zero at first
  kAverage,     ///< the moving average of a parameter block: at first the same numbers
  kStatistics   ///< batch norm's running statistics
};

/// A block that outlives the step. Names are unique: "conv1", "conv1.exp_avg" and other tensors of
/// states_of(optimizer), "conv1.average", "bn1.running". What an optimizer keeps of a layer that is
/// updated in parts is a block of the graph for each part, in order: "fc6.exp_avg[0]",
/// "fc6.exp_avg[1]".
struct StateBlock {
  std::vector<prefetch::DataId> ids;  ///< one, but of such
  std::string name;
  ParameterSpec spec;
  StateRole role;
  /// Where each of several ranks keeps a slice of a part: the floats of the whole part, by part; 0
  /// where all have all of it. Empty where nothing is divided (divide_updates()).
  std::vector<std::size_t> divided{};
};

/// A sum of gradients that another sum, one of Step::gradients, is added to when the ranks exchange
/// them. It outlives the step.
struct WaitingSum {
  prefetch::DataId sum{};    ///< the other one
  std::size_t node = 0;      ///< which of those that wait, in the order of micro-batches
  prefetch::DataId block{};  ///< of as many bytes as `sum`
};

/// One step of a network, or the program of a batch (passes.h): the task graph that planners see
/// and the launches that the executor runs, from one source, task by task.
struct Step {
  prefetch::TaskGraph graph;
  std::vector<Launch> launches;      ///< by TaskId
  std::vector<Launch> far_launches;  ///< by TaskGraph::far_updates: update_far()
  std::vector<StateBlock> state;     ///< in layer order
  /// Where its batch waits for it, if it does: one of those that outlive the step.
  std::optional<prefetch::DataId> staged;
  /// Two floats for each micro-batch, see SoftmaxCrossEntropyTrain or -Evaluate; of a sampling
  /// step, logits.
  std::vector<prefetch::DataId> results{};
  std::size_t judged_samples = 0;  ///< JudgedSamples behind these
  std::size_t given_logits = 0;    ///< floats behind these
  /// The gradients of parameters that outlive the step, in the order of `graph`: those that several
  /// ranks exchange.
  std::vector<prefetch::DataId> gradients;
  /// Other sums of such gradients, of micro-batches that stand before (make_program()).
  std::vector<WaitingSum> waiting;
  /// By micro-batch, the running statistics that it leaves: blocks that begin a step with what
  /// those of `state` have, in that order. Empty where a batch is not cut.
  std::vector<std::vector<prefetch::DataId>> statistics;
};

/// The first launch, which loads the batch or its first micro-batch.
[[nodiscard]] inline const LoadBatch& load_of(const Step& step) {
  return std::get<LoadBatch>(step.launches.front().operation);
}

/// Loads a batch, goes forward, backward, and updates each parameter block, or part of it, as soon
/// as its gradient is complete, or with a clip_norm as all are. Throws: um::Error when layers have
/// names of which two parts of the step would get one: "a.momentum" is the momentum of a layer "a".
[[nodiscard]] Step make_training_step(const nets::Network& network, const SizeModel& size_model,
                                      const StepOptions& options);

/// Loads a batch and goes forward as in inference: running statistics, no dropout, no auxiliary
/// heads. Its state blocks are the parameters and statistics of the training step, by the same
/// names, but for those of auxiliary heads. It loads a smaller batch where a result of so many
/// samples would be too large to stay near. Throws: likewise; um::Error where the logits of one
/// sample are.
[[nodiscard]] Step make_evaluation_step(const nets::Network& network, const SizeModel& size_model,
                                        const StepOptions& options);

/// Loads samples of text and goes forward as in inference, up to what the network expects behind
/// one token of each sample: the step's result is not a loss but the logits of VocabularyLogits,
/// floats (N, V). Its state blocks are those of the evaluation step. Requires: the last layer is a
/// nets::VocabularyLoss. Throws: likewise.
[[nodiscard]] Step make_sampling_step(const nets::Network& network, const SizeModel& size_model,
                                      const StepOptions& options);

/// Returns the page in which the tensors of a step move: as prefetch::choose_page(), and none
/// smaller than the device can move.
[[nodiscard]] um::Bytes step_page(const prefetch::TaskGraph& graph, const SizeModel& size_model);

/// Inserts a task before the one at `place`. Task::after and GradientExchange::ready of later tasks
/// keep the tasks that they mean.
void insert_task(Step& step, std::size_t place, prefetch::Task task, Launch launch);

/// Plans and checkpoints know blocks and tasks by their names, which are made of the layers'.
/// Throws: um::Error when two of either have the same.
void expect_unique_names(const Step& step, const nets::Network& network);

}  // namespace spillway
