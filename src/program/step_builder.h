#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nets/network.h"
#include "prefetch/task_graph.h"
#include "src/ops/backend.h"
#include "src/program/step.h"

namespace spillway {

/// What a node of the network has made: where it is and how it may be used.
struct Value {
  TensorShape shape;
  prefetch::DataId block{};
  bool needs_gradient = true;
  bool is_saved = false;  ///< the layer that made it reads it again on the way back
};

/// The blocks of a trained layer that outlive the step. Its gradient and what the optimizer keeps
/// may be in parts: StepOptions::largest_update.
struct TrainedBlocks {
  prefetch::DataId parameters{};
  /// What the optimizer keeps beside each part of them, in the order of the update's operands: as
  /// many as there are parts. Empty in an evaluation step.
  std::vector<std::vector<prefetch::DataId>> optimizer;
  bool is_frozen = false;
};

/// The table of an embedding, which a loss may have too.
struct SharedTable {
  TrainedBlocks blocks;
  std::optional<prefetch::DataId> gradient;  ///< the loss's, to which the embedding adds its own
};

enum class Purpose { kTraining, kEvaluation, kSampling };

/// Collects the tasks of a step, launch and graph side by side. Layers are written in terms of it.
class StepBuilder {
 public:
  StepBuilder(const nets::Network& network, const SizeModel& size_model, StepOptions options,
              Purpose purpose);

  [[nodiscard]] bool is_training() const { return purpose_ == Purpose::kTraining; }
  [[nodiscard]] bool is_sampling() const { return purpose_ == Purpose::kSampling; }

  // ---- values of the network's nodes
  [[nodiscard]] const Value& value(nets::NodeId node) const;
  void set_value(nets::NodeId node, Value value);
  /// True when a layer that reads `node` may write its output over it: it is the only reader, and
  /// nobody needs the content later.
  [[nodiscard]] bool may_overwrite(nets::NodeId node) const;

  // ---- tables of embeddings
  void share_table(nets::NodeId embedding, const TrainedBlocks& blocks);
  /// Requires: share_table() of that node.
  [[nodiscard]] const SharedTable& table(nets::NodeId embedding) const;
  void set_table_gradient(nets::NodeId embedding, prefetch::DataId gradient);

  // ---- blocks
  prefetch::DataId new_tensor(std::string name, const TensorShape& shape);
  prefetch::DataId new_bytes(std::string name, um::Bytes size);
  /// A parameter block and, in a training step, what the optimizer keeps beside it.
  TrainedBlocks new_parameters(const std::string& name, const ParameterSpec& spec);
  prefetch::DataId new_statistics(const std::string& name, std::size_t channels);
  /// A block for the gradient of a part of parameters.
  prefetch::DataId new_parameter_gradient(const std::string& name, const ParameterSpec& spec,
                                          const ParameterPart& part = {});

  // ---- tasks
  /// The first task: makes the value of the image node, and the labels.
  void emit_load();
  /// The labels for a loss on `x`. Requires: there is one for each of its positions.
  [[nodiscard]] prefetch::DataId labels_of(const TensorShape& x) const;

  /// One task, with its blocks by the operation's names. A block of both is updated in place.
  /// `updated_once` is one of `writes` that a recomputation leaves alone.
  template <class Op>
  void emit(std::string name, prefetch::Phase phase, const Op& operation,
            const typename Op::template Reads<prefetch::DataId>& reads,
            const typename Op::template Writes<prefetch::DataId>& writes,
            std::optional<prefetch::DataId> updated_once = {}) {
    emit_task({.name = std::move(name),
               .phase = phase,
               .reads = listed<prefetch::DataId>(reads, read_count(operation)),
               .writes = listed<prefetch::DataId>(writes, write_count(operation))},
              operation, updated_once);
  }
  /// The update of a part of a parameter block with its gradient: at once, or with a clip_norm when
  /// all gradients are there.
  void emit_update(const std::string& name, const ParameterSpec& spec, const TrainedBlocks& blocks,
                   prefetch::DataId gradient, const ParameterPart& part = {});

  /// The updates that have waited. To be called last.
  void emit_clipped_updates();

  [[nodiscard]] const SizeModel& size_model() const { return size_model_; }
  [[nodiscard]] std::size_t batch() const { return options_.batch; }
  [[nodiscard]] float label_smoothing() const { return options_.label_smoothing; }
  [[nodiscard]] bool gives_logits() const { return options_.gives_logits; }
  [[nodiscard]] bool mixes_labels() const { return options_.mixes_labels && is_training(); }
  [[nodiscard]] const nets::Network& network() const { return network_; }
  /// Counts from 0: one number for each dropout layer.
  [[nodiscard]] std::uint32_t next_dropout_stream() { return next_dropout_stream_++; }

  /// The block of the step's result; nothing before the first loss.
  [[nodiscard]] std::optional<prefetch::DataId> result() const { return result_; }
  void set_result(prefetch::DataId result) {
    result_ = result;
    step_.results = {result};
  }
  /// Of an evaluation: what follows the two floats of the result.
  void set_judged(const SoftmaxCrossEntropyEvaluate& evaluation) {
    step_.judged_samples = evaluation.judged_samples();
    step_.given_logits = evaluation.given_logits();
  }
  [[nodiscard]] Step take_step() { return std::move(step_); }

 private:
  // One part of a parameter block.
  struct Update {
    std::string name;
    ParameterSpec spec;
    TrainedBlocks blocks;
    prefetch::DataId gradient;
    ParameterPart part;
  };
  void emit_now(const Update& update);
  void emit_own_update(const Update& update, const std::vector<prefetch::DataId>& own);
  [[nodiscard]] bool is_frozen(const std::string& name) const;
  // Adds to the norm of all gradients.
  void emit_squares(const Update& update);
  void emit_task(prefetch::Task task, const Operation& operation,
                 std::optional<prefetch::DataId> updated_once);
  [[nodiscard]] std::vector<prefetch::Algorithm> algorithms(const Operation& operation);
  [[nodiscard]] std::vector<AlgorithmInfo> known_algorithms(const Operation& operation);
  // In so many parts.
  std::vector<prefetch::DataId> new_state(const std::string& name, const ParameterSpec& spec,
                                          StateRole role, std::size_t parts = 1);
  // How many parts the gradient of such parameters has, and what the optimizer keeps.
  [[nodiscard]] std::size_t parts_of(const ParameterSpec& spec) const;

  const nets::Network& network_;
  struct KnownAlgorithms {
    Operation operation;
    std::vector<AlgorithmInfo> algorithms;
  };
  const SizeModel& size_model_;
  std::deque<KnownAlgorithms> known_;  // of the last few operations that were asked for
  StepOptions options_;
  Purpose purpose_;
  std::vector<std::size_t> readers_;  // by node
  std::vector<Value> values_;         // by node
  std::map<nets::NodeId, SharedTable> tables_;
  prefetch::DataId labels_{};
  std::size_t label_count_ = 0;  // of the batch
  std::optional<prefetch::DataId> result_;
  std::optional<prefetch::DataId> squares_;  // of gradients
  std::vector<Update> waiting_;              // for all of these
  std::uint32_t next_dropout_stream_ = 0;
  Step step_;
};

/// A layer of a network as it is executed: a layer followed by a ReLU that nobody else reads in
/// between is one.
struct FusedLayer {
  nets::NodeId node;    ///< whose layer it is
  nets::NodeId output;  ///< whose value it makes: the ReLU's when fused, else `node`
  bool relu;
};

/// The layers of `network` in order, without the image. Convolution, transposed or not, batch norm,
/// linear and add take a following ReLU in.
[[nodiscard]] std::vector<FusedLayer> fuse(const nets::Network& network);

/// How many layers read the value of each node; that a crop has another's size is no reading.
[[nodiscard]] std::vector<std::size_t> count_readers(const nets::Network& network);

}  // namespace spillway
