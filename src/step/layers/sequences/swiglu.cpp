#include "src/step/layers.h"

namespace spillway::layers {

using prefetch::DataId;
using prefetch::Phase;

// Saves x.
Backward forward(const nets::Swiglu& /*layer*/, const Place& place, StepBuilder& step) {
  const nets::NodeId input = place.inputs[0];
  const Value x = step.value(input);
  const TensorShape y_shape{.batch = step.batch(), .image = step.network()[place.output].output};
  const DataId y = step.new_tensor(place.name + ".y", y_shape);
  step.emit(place.name + ".forward", Phase::kForward, SwigluForward{.y = y_shape}, {.x = x.block},
            {.y = y});
  step.set_value(place.output, {.shape = y_shape, .block = y});

  return [=, &step](Gradients& gradients) {
    const Gradient dy = gradients.take(place.output);
    const DataId dx = step.new_tensor(place.name + ".dx", x.shape);
    step.emit(place.name + ".backward", Phase::kBackward, SwigluBackward{.y = y_shape},
              {.x = x.block, .dy = dy.block}, {.dx = dx});
    gradients.contribute(input, dx);
  };
}

}  // namespace spillway::layers
