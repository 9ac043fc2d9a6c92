#include "src/step/layers.h"

namespace spillway::layers {

using prefetch::DataId;
using prefetch::Phase;

// In place where nobody else needs x. Saves y.
Backward forward(const nets::Relu& /*layer*/, const Place& place, StepBuilder& step) {
  const nets::NodeId input = place.inputs[0];
  const Value x = step.value(input);
  const DataId y =
      step.may_overwrite(input) ? x.block : step.new_tensor(place.name + ".y", x.shape);
  step.emit(place.name + ".forward", Phase::kForward, ReluForward{.x = x.shape}, {.x = x.block},
            {.y = y});
  step.set_value(
      place.output,
      {.shape = x.shape, .block = y, .needs_gradient = x.needs_gradient, .is_saved = true});

  if (!x.needs_gradient) return {};
  return [=](Gradients& gradients) {
    const Gradient dx = gradients.take_before_relu(place.output, {.block = y});
    gradients.contribute(input, dx.block);
  };
}

}  // namespace spillway::layers
