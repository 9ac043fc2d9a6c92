#include "src/step/layers.h"

namespace spillway::layers {

using prefetch::DataId;
using prefetch::Phase;

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

}  // namespace spillway::layers
