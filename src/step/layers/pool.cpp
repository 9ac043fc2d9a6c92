#include "src/step/layers.h"

namespace spillway::layers {

using prefetch::DataId;
using prefetch::Phase;

// Max pooling saves where each maximum came from; average pooling saves nothing.
Backward forward(const nets::Pool& layer, const Place& place, StepBuilder& step) {
  const nets::NodeId input = place.inputs[0];
  const Value x = step.value(input);
  const TensorShape y_shape{.batch = step.batch(), .image = step.network()[place.output].output};
  const PoolForward operation{.x = x.shape, .y = y_shape, .pool = layer};
  const DataId y = step.new_tensor(place.name + ".y", y_shape);
  const DataId index =
      layer.kind == nets::PoolKind::kMax
          ? step.new_bytes(place.name + ".index", step.size_model().saved_bytes(operation))
          : DataId{};
  step.emit(place.name + ".forward", Phase::kForward, operation, {.x = x.block},
            {.y = y, .index = index});
  step.set_value(place.output, {.shape = y_shape, .block = y, .needs_gradient = x.needs_gradient});

  if (!x.needs_gradient) return {};
  return [=, &step](Gradients& gradients) {
    const DataId dy = gradients.take(place.output).block;
    const DataId dx = step.new_tensor(place.name + ".dx", x.shape);
    step.emit(place.name + ".backward", Phase::kBackward,
              PoolBackward{.x = x.shape, .y = y_shape, .pool = layer}, {.dy = dy, .index = index},
              {.dx = dx});
    gradients.contribute(input, dx);
  };
}

// An average over the whole image.
Backward forward(const nets::GlobalAveragePool& /*layer*/, const Place& place, StepBuilder& step) {
  const nets::Shape& image = step.value(place.inputs[0]).shape.image;
  const nets::Extent all{.height = image.height, .width = image.width};
  return forward(nets::Pool{.kind = nets::PoolKind::kAverage, .kernel = all, .stride = all}, place,
                 step);
}

}  // namespace spillway::layers
