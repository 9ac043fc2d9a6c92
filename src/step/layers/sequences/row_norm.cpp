#include "src/step/layers.h"

namespace spillway::layers {

using prefetch::DataId;
using prefetch::Phase;

namespace {

// Saves x and a number or two of each token.
Backward normalize(float epsilon, bool is_centred, const Place& place, StepBuilder& step) {
  const nets::NodeId input = place.inputs[0];
  const Value x = step.value(input);
  const RowNormForward operation{.x = x.shape, .epsilon = epsilon, .is_centred = is_centred};
  const TrainedBlocks blocks = step.new_parameters(place.name, operation.parameters());
  const DataId y = step.new_tensor(place.name + ".y", x.shape);
  const DataId saved =
      step.new_bytes(place.name + ".saved", step.size_model().saved_bytes(operation));
  step.emit(place.name + ".forward", Phase::kForward, operation,
            {.x = x.block, .parameters = blocks.parameters}, {.y = y, .saved = saved});
  step.set_value(place.output, {.shape = x.shape, .block = y});

  return [=, &step](Gradients& gradients) {
    const Gradient dy = gradients.take(place.output);
    const DataId dx = dy.may_overwrite ? dy.block : step.new_tensor(place.name + ".dx", x.shape);
    const DataId gradient = step.new_parameter_gradient(place.name, operation.parameters());
    step.emit(place.name + ".backward", Phase::kBackward,
              RowNormBackward{.x = x.shape, .epsilon = epsilon, .is_centred = is_centred},
              {.x = x.block, .dy = dy.block, .parameters = blocks.parameters, .saved = saved},
              {.dx = dx, .dparameters = gradient});
    step.emit_update(place.name, operation.parameters(), blocks, gradient);
    gradients.contribute(input, dx);
  };
}

}  // namespace

Backward forward(const nets::LayerNorm& layer, const Place& place, StepBuilder& step) {
  return normalize(layer.epsilon, /*is_centred=*/true, place, step);
}
Backward forward(const nets::RmsNorm& layer, const Place& place, StepBuilder& step) {
  return normalize(layer.epsilon, /*is_centred=*/false, place, step);
}

}  // namespace spillway::layers
