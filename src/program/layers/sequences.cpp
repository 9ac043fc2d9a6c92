#include "src/program/layers.h"

namespace spillway::layers {
namespace {

using prefetch::DataId;
using prefetch::Phase;

template <class Headed>
Heads heads_of(const Headed& layer) {
  return {.heads = layer.heads, .kv_heads = nets::key_heads(layer)};
}

}  // namespace

// Saves the tokens. A loss may have the same table: then its gradient is made by the loss, first on
// the way back, and added to here, last, where the one update of the table is.
Backward forward(const nets::Embedding& layer, const Place& place, StepBuilder& step) {
  const Value tokens = step.value(place.inputs[0]);
  const TensorShape y_shape{.batch = step.batch(), .image = step.network()[place.output].output};
  const EmbeddingForward operation{.y = y_shape, .vocabulary = layer.vocabulary};
  const TrainedBlocks blocks = step.new_parameters(place.name, operation.parameters());
  step.share_table(place.output, blocks);
  const DataId y = step.new_tensor(place.name + ".y", y_shape);
  step.emit(place.name + ".forward", Phase::kForward, operation,
            {.tokens = tokens.block, .parameters = blocks.parameters}, {.y = y});
  step.set_value(place.output, {.shape = y_shape, .block = y});

  return [=, &step](Gradients& gradients) {
    const Gradient dy = gradients.take(place.output);
    const std::optional<DataId> sum = step.table(place.output).gradient;
    const DataId gradient =
        sum ? *sum : step.new_parameter_gradient(place.name, operation.parameters());
    step.emit(place.name + ".backward", Phase::kBackward,
              EmbeddingBackward{
                  .y = y_shape, .vocabulary = layer.vocabulary, .accumulates = sum.has_value()},
              {.tokens = tokens.block, .dy = dy.block, .sum = gradient}, {.dparameters = gradient});
    step.emit_update(place.name, operation.parameters(), blocks, gradient);
  };
}

// In place where nobody else needs x. Saves nothing.
Backward forward(const nets::PositionEmbedding& layer, const Place& place, StepBuilder& step) {
  const nets::NodeId input = place.inputs[0];
  const Value x = step.value(input);
  const PositionParameters parameters{.positions = layer.rows(x.shape.image),
                                      .segments = layer.segments,
                                      .features = x.shape.image.channels};
  const TrainedBlocks blocks = step.new_parameters(place.name, parameters);
  const DataId y =
      step.may_overwrite(input) ? x.block : step.new_tensor(place.name + ".y", x.shape);
  step.emit(place.name + ".forward", Phase::kForward,
            PositionsForward{.x = x.shape, .parameters = parameters},
            {.x = x.block, .parameters = blocks.parameters}, {.y = y});
  step.set_value(place.output, {.shape = x.shape, .block = y});

  return [=, &step](Gradients& gradients) {
    const Gradient dy = gradients.take(place.output);
    const DataId gradient = step.new_parameter_gradient(place.name, parameters);
    step.emit(place.name + ".backward", Phase::kBackward,
              PositionsBackward{.x = x.shape, .parameters = parameters}, {.dy = dy.block},
              {.dparameters = gradient});
    step.emit_update(place.name, parameters, blocks, gradient);
    gradients.contribute(input, dy.block);
  };
}

// Saves nothing.
Backward forward(const nets::ImageTokens& layer, const Place& place, StepBuilder& step) {
  const nets::NodeId input = place.inputs[0];
  const Value x = step.value(input);
  const ImageTokensForward operation{.x = x.shape, .class_token = layer.class_token};
  const ClassTokenParameters token{.features = x.shape.image.channels};
  TrainedBlocks blocks;
  if (layer.class_token) blocks = step.new_parameters(place.name, token);
  const DataId y = step.new_tensor(place.name + ".y", operation.y());
  step.emit(place.name + ".forward", Phase::kForward, operation,
            {.x = x.block, .parameters = blocks.parameters}, {.y = y});
  const bool needs_gradient = x.needs_gradient || layer.class_token;
  step.set_value(place.output,
                 {.shape = operation.y(), .block = y, .needs_gradient = needs_gradient});

  if (!needs_gradient) return {};
  return [=, &step](Gradients& gradients) {
    const Gradient dy = gradients.take(place.output);
    const DataId dx = step.new_tensor(place.name + ".dx", x.shape);
    const DataId gradient =
        layer.class_token ? step.new_parameter_gradient(place.name, token) : DataId{};
    step.emit(place.name + ".backward", Phase::kBackward,
              ImageTokensBackward{.x = x.shape, .class_token = layer.class_token}, {.dy = dy.block},
              {.dx = dx, .dparameters = gradient});
    if (layer.class_token) step.emit_update(place.name, token, blocks, gradient);
    gradients.contribute(input, dx);
  };
}

// Saves nothing.
Backward forward(const nets::FirstToken& /*layer*/, const Place& place, StepBuilder& step) {
  const nets::NodeId input = place.inputs[0];
  const Value x = step.value(input);
  const FirstTokenForward operation{.x = x.shape};
  const DataId y = step.new_tensor(place.name + ".y", operation.y());
  step.emit(place.name + ".forward", Phase::kForward, operation, {.x = x.block}, {.y = y});
  step.set_value(place.output,
                 {.shape = operation.y(), .block = y, .needs_gradient = x.needs_gradient});

  if (!x.needs_gradient) return {};
  return [=, &step](Gradients& gradients) {
    const Gradient dy = gradients.take(place.output);
    const DataId dx = step.new_tensor(place.name + ".dx", x.shape);
    step.emit(place.name + ".backward", Phase::kBackward, FirstTokenBackward{.x = x.shape},
              {.dy = dy.block}, {.dx = dx});
    gradients.contribute(input, dx);
  };
}

// In place where nobody else needs x. Saves nothing.
Backward forward(const nets::Rotary& layer, const Place& place, StepBuilder& step) {
  const nets::NodeId input = place.inputs[0];
  const Value x = step.value(input);
  const DataId y =
      step.may_overwrite(input) ? x.block : step.new_tensor(place.name + ".y", x.shape);
  step.emit(place.name + ".forward", Phase::kForward,
            RotaryForward{.x = x.shape, .heads = heads_of(layer), .base = layer.base},
            {.x = x.block}, {.y = y});
  step.set_value(place.output, {.shape = x.shape, .block = y});

  return [=, &step](Gradients& gradients) {
    const Gradient dy = gradients.take(place.output);
    const DataId dx = dy.may_overwrite ? dy.block : step.new_tensor(place.name + ".dx", x.shape);
    step.emit(place.name + ".backward", Phase::kBackward,
              RotaryBackward{.x = x.shape, .heads = heads_of(layer), .base = layer.base},
              {.dy = dy.block}, {.dx = dx});
    gradients.contribute(input, dx);
  };
}

// Saves x, y and a number for each head and token; never the weights.
Backward forward(const nets::Attention& layer, const Place& place, StepBuilder& step) {
  const nets::NodeId input = place.inputs[0];
  const Value x = step.value(input);
  AttentionGeometry geometry{.x = x.shape, .heads = heads_of(layer), .is_causal = layer.causal};
  if (step.is_training() && layer.dropout > 0) {
    geometry.dropout = layer.dropout;
    geometry.stream = step.next_dropout_stream();
  }
  const AttentionForward operation{.geometry = geometry};
  const DataId y = step.new_tensor(place.name + ".y", geometry.y());
  const DataId saved =
      step.new_bytes(place.name + ".saved", step.size_model().saved_bytes(operation));
  step.emit(place.name + ".forward", Phase::kForward, operation, {.x = x.block},
            {.y = y, .saved = saved});
  step.set_value(place.output, {.shape = geometry.y(), .block = y, .is_saved = true});

  return [=, &step](Gradients& gradients) {
    const Gradient dy = gradients.take(place.output);
    const DataId dx = step.new_tensor(place.name + ".dx", x.shape);
    step.emit(place.name + ".backward", Phase::kBackward, AttentionBackward{.geometry = geometry},
              {.x = x.block, .y = y, .dy = dy.block, .saved = saved}, {.dx = dx});
    gradients.contribute(input, dx);
  };
}

}  // namespace spillway::layers
