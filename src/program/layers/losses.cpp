#include <algorithm>

#include "src/program/layers.h"

namespace spillway::layers {
namespace {

using prefetch::DataId;
using prefetch::Phase;

// Parameters that a loss over a vocabulary trains; without a table it has an embedding's.
struct OwnBlocks {
  std::optional<TrainedBlocks> table;
  std::optional<TrainedBlocks> bias;
};

// Beside a table of the loss's own, its biases have a name of their own.
std::string bias_name(const std::string& name, bool has_table) {
  return has_table ? name + ".output" : name;
}

OwnBlocks own_blocks(const VocabularyGeometry& geometry, bool has_table, const std::string& name,
                     StepBuilder& step) {
  OwnBlocks blocks;
  if (has_table) blocks.table = step.new_parameters(name, geometry.table());
  if (geometry.bias) {
    blocks.bias = step.new_parameters(bias_name(name, has_table), geometry.bias_parameters());
  }
  return blocks;
}

void emit_logits(const std::string& name, const VocabularyLogits& logits,
                 const VocabularyLogits::Reads<DataId>& reads, StepBuilder& step) {
  // An executor reads at least two floats of any result.
  const std::size_t floats = std::max<std::size_t>(logits.logit_count(), 2);
  step.set_result(step.new_bytes("logits", float_bytes(floats)));
  step.emit(name + ".logits", Phase::kForward, logits, reads, {.logits = *step.result()});
}

}  // namespace

// The loss and the gradient of the logits in one task, over the logits. Where there are several,
// each adds its loss to those before; the last, the network's own, counts what is right.
Backward forward(const nets::SoftmaxCrossEntropy& layer, const Place& place, StepBuilder& step) {
  const nets::NodeId input = place.inputs[0];
  const Value logits = step.value(input);
  const bool accumulates = step.result().has_value();
  const nets::Shape& image = logits.shape.image;
  const SoftmaxCrossEntropyEvaluate evaluation{
      .x = logits.shape, .gives_logits = step.gives_logits() && image.height * image.width == 1};
  const std::size_t judged =
      step.is_training() ? 0 : evaluation.judged_floats() + evaluation.given_logits();
  if (!accumulates) step.set_result(step.new_bytes("result", float_bytes(2 + judged)));
  const DataId result = *step.result();
  if (!step.is_training()) {
    step.set_judged(evaluation);
    step.emit(place.name + ".forward", Phase::kForward, evaluation,
              {.logits = logits.block, .labels = step.labels_of(logits.shape)}, {.result = result});
    return {};
  }
  const DataId gradient =
      step.may_overwrite(input) ? logits.block : step.new_tensor(place.name + ".dx", logits.shape);
  step.emit(place.name + ".forward", Phase::kForward,
            SoftmaxCrossEntropyTrain{.x = logits.shape,
                                     .weight = layer.weight,
                                     .accumulates = accumulates,
                                     .smoothing = step.label_smoothing(),
                                     .mixes = step.mixes_labels()},
            {.logits = logits.block, .labels = step.labels_of(logits.shape), .result = result},
            {.result = result, .dlogits = gradient});
  return [=](Gradients& gradients) { gradients.contribute(input, gradient); };
}

// The loss, the gradient of x, over x where nobody needs that, and those of the table and the
// biases in one task: the logits are never there all at once.
Backward forward(const nets::VocabularyLoss& layer, const Place& place, StepBuilder& step) {
  const nets::NodeId input = place.inputs[0];
  const Value x = step.value(input);
  const std::optional<nets::NodeId> shared = nets::table_of(step.network()[place.output]);
  const VocabularyGeometry geometry{
      .x = x.shape, .vocabulary = layer.vocabulary, .bias = layer.bias};
  const OwnBlocks own = own_blocks(geometry, !shared, place.name, step);
  const TrainedBlocks table = shared ? step.table(*shared).blocks : *own.table;
  const DataId labels = step.labels_of(x.shape);
  const DataId bias = own.bias ? own.bias->parameters : DataId{};
  if (step.is_sampling()) {
    emit_logits(place.name, {.geometry = geometry},
                {.x = x.block, .table = table.parameters, .bias = bias}, step);
    return {};
  }
  step.set_result(step.new_bytes("result", float_bytes(2)));
  if (!step.is_training()) {
    step.emit(place.name + ".forward", Phase::kForward,
              VocabularyLossEvaluate{.geometry = geometry},
              {.x = x.block, .table = table.parameters, .labels = labels, .bias = bias},
              {.result = *step.result()});
    return {};
  }
  const std::string biases = bias_name(place.name, !shared);
  const std::string owner = shared ? step.network()[*shared].name : place.name;
  const DataId dtable = step.new_parameter_gradient(owner, geometry.table());
  if (shared) step.set_table_gradient(*shared, dtable);
  const DataId dbias =
      own.bias ? step.new_parameter_gradient(biases, geometry.bias_parameters()) : DataId{};
  const DataId dx =
      step.may_overwrite(input) ? x.block : step.new_tensor(place.name + ".dx", x.shape);
  step.emit(place.name + ".forward", Phase::kForward,
            VocabularyLossTrain{.geometry = geometry, .smoothing = step.label_smoothing()},
            {.x = x.block, .table = table.parameters, .labels = labels, .bias = bias},
            {.result = *step.result(), .dx = dx, .dtable = dtable, .dbias = dbias});
  return [=, &step](Gradients& gradients) {
    if (own.bias) {
      step.emit_update(biases, geometry.bias_parameters(), *own.bias, dbias);
    }
    if (own.table) step.emit_update(place.name, geometry.table(), *own.table, dtable);
    gradients.contribute(input, dx);
  };
}

}  // namespace spillway::layers
