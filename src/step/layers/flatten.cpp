#include "src/step/layers.h"

namespace spillway::layers {

// No task: the value keeps its shape, and the layer that reads it takes all its elements.
Backward forward(const nets::Flatten& /*layer*/, const Place& place, StepBuilder& step) {
  const nets::NodeId input = place.inputs[0];
  Value same = step.value(input);
  same.is_saved = !step.may_overwrite(input);
  step.set_value(place.output, same);
  if (!same.needs_gradient) return {};
  return [=](Gradients& gradients) {
    gradients.contribute(input, gradients.take(place.output).block);
  };
}

}  // namespace spillway::layers
