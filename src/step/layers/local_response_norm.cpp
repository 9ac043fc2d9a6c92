#include "src/step/layers.h"

namespace spillway::layers {

using prefetch::DataId;
using prefetch::Phase;

// Saves x and y.
Backward forward(const nets::LocalResponseNorm& layer, const Place& place, StepBuilder& step) {
  const nets::NodeId input = place.inputs[0];
  const Value x = step.value(input);
  const DataId y = step.new_tensor(place.name + ".y", x.shape);
  step.emit(place.name + ".forward", Phase::kForward, LrnForward{.x = x.shape, .norm = layer},
            {.x = x.block}, {.y = y});
  step.set_value(
      place.output,
      {.shape = x.shape, .block = y, .needs_gradient = x.needs_gradient, .is_saved = true});

  if (!x.needs_gradient) return {};
  return [=, &step](Gradients& gradients) {
    const Gradient dy = gradients.take(place.output);
    const DataId dx = dy.may_overwrite ? dy.block : step.new_tensor(place.name + ".dx", x.shape);
    step.emit(place.name + ".backward", Phase::kBackward, LrnBackward{.x = x.shape, .norm = layer},
              {.x = x.block, .y = y, .dy = dy.block}, {.dx = dx});
    gradients.contribute(input, dx);
  };
}

}  // namespace spillway::layers
