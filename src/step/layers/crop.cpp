#include "src/step/layers.h"

namespace spillway::layers {

using prefetch::DataId;
using prefetch::Phase;

// Saves nothing.
Backward forward(const nets::Crop& layer, const Place& place, StepBuilder& step) {
  const nets::NodeId input = place.inputs[0];
  const Value x = step.value(input);
  const TensorShape y_shape{.batch = step.batch(), .image = step.network()[place.output].output};
  const nets::Shape& whole = x.shape.image;
  const nets::Extent offset =
      layer.is_centred ? nets::Extent{.height = (whole.height - y_shape.image.height) / 2,
                                      .width = (whole.width - y_shape.image.width) / 2}
                       : layer.offset;
  const DataId y = step.new_tensor(place.name + ".y", y_shape);
  step.emit(place.name + ".forward", Phase::kForward,
            CropForward{.x = x.shape, .y = y_shape, .offset = offset}, {.x = x.block}, {.y = y});
  step.set_value(place.output, {.shape = y_shape, .block = y, .needs_gradient = x.needs_gradient});

  if (!x.needs_gradient) return {};
  return [=, &step](Gradients& gradients) {
    const DataId dy = gradients.take(place.output).block;
    const DataId dx = step.new_tensor(place.name + ".dx", x.shape);
    step.emit(place.name + ".backward", Phase::kBackward,
              CropBackward{.x = x.shape, .y = y_shape, .offset = offset}, {.dy = dy}, {.dx = dx});
    gradients.contribute(input, dx);
  };
}

}  // namespace spillway::layers
