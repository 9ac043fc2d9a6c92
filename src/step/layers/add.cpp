#include "src/step/layers.h"

namespace spillway::layers {

using prefetch::DataId;
using prefetch::Phase;

// Over one of its inputs where nobody else needs that. Saves y when a ReLU ends it, else nothing;
// both sides get the same gradient.
Backward forward(const nets::Add& /*layer*/, const Place& place, StepBuilder& step) {
  nets::NodeId a = place.inputs[0];
  nets::NodeId b = place.inputs[1];
  if (!step.may_overwrite(a)) std::swap(a, b);
  const Value x = step.value(a);
  const bool needs_gradient = x.needs_gradient || step.value(b).needs_gradient;
  const DataId y = step.may_overwrite(a) ? x.block : step.new_tensor(place.name + ".y", x.shape);
  step.emit(place.name + ".forward", Phase::kForward, AddForward{.x = x.shape, .relu = place.relu},
            {.a = x.block, .b = step.value(b).block}, {.y = y});
  step.set_value(
      place.output,
      {.shape = x.shape, .block = y, .needs_gradient = needs_gradient, .is_saved = place.relu});

  if (!needs_gradient) return {};
  return [=](Gradients& gradients) {
    const Gradient dy =
        place.relu ? gradients.take_before_relu(place.output, y) : gradients.take(place.output);
    gradients.contribute(a, dy.block);
    gradients.contribute(b, dy.block);
  };
}

}  // namespace spillway::layers
