#include "src/step/layers.h"

namespace spillway::layers {

using prefetch::DataId;
using prefetch::Phase;

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

}  // namespace spillway::layers
