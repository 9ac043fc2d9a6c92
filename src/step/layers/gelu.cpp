#include "src/step/layers.h"

namespace spillway::layers {

using prefetch::DataId;
using prefetch::Phase;

// Saves x, from which the way back computes the slope.
Backward forward(const nets::Gelu& layer, const Place& place, StepBuilder& step) {
  const nets::NodeId input = place.inputs[0];
  const Value x = step.value(input);
  const DataId y = step.new_tensor(place.name + ".y", x.shape);
  step.emit(place.name + ".forward", Phase::kForward, GeluForward{.x = x.shape, .tanh = layer.tanh},
            {.x = x.block}, {.y = y});
  step.set_value(place.output, {.shape = x.shape, .block = y, .needs_gradient = x.needs_gradient});

  if (!x.needs_gradient) return {};
  return [=, &step](Gradients& gradients) {
    const Gradient dy = gradients.take(place.output);
    const DataId dx = dy.may_overwrite ? dy.block : step.new_tensor(place.name + ".dx", x.shape);
    step.emit(place.name + ".backward", Phase::kBackward,
              GeluBackward{.x = x.shape, .tanh = layer.tanh}, {.x = x.block, .dy = dy.block},
              {.dx = dx});
    gradients.contribute(input, dx);
  };
}

}  // namespace spillway::layers
