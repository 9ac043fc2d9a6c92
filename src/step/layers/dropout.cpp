#include "src/step/layers.h"

namespace spillway::layers {

using prefetch::DataId;
using prefetch::Phase;

// Saves nothing: the mask is drawn again. In place where nobody else needs x.
Backward forward(const nets::Dropout& layer, const Place& place, StepBuilder& step) {
  const nets::NodeId input = place.inputs[0];
  const Value x = step.value(input);
  if (!step.is_training() || layer.probability == 0) {
    Value same = x;
    same.is_saved = !step.may_overwrite(input);
    step.set_value(place.output, same);
    if (!x.needs_gradient) return {};
    return [=](Gradients& gradients) {
      gradients.contribute(input, gradients.take(place.output).block);
    };
  }
  const std::uint32_t stream = step.next_dropout_stream();
  const DataId y =
      step.may_overwrite(input) ? x.block : step.new_tensor(place.name + ".y", x.shape);
  step.emit(place.name + ".forward", Phase::kForward,
            DropoutForward{.x = x.shape, .probability = layer.probability, .stream = stream},
            {.x = x.block}, {.y = y});
  step.set_value(place.output, {.shape = x.shape, .block = y, .needs_gradient = x.needs_gradient});

  if (!x.needs_gradient) return {};
  return [=, &step](Gradients& gradients) {
    const Gradient dy = gradients.take(place.output);
    const DataId dx = dy.may_overwrite ? dy.block : step.new_tensor(place.name + ".dx", x.shape);
    step.emit(place.name + ".backward", Phase::kBackward,
              DropoutBackward{.x = x.shape, .probability = layer.probability, .stream = stream},
              {.dy = dy.block}, {.dx = dx});
    gradients.contribute(input, dx);
  };
}

}  // namespace spillway::layers
