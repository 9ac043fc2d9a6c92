#include "src/layers/layers.h"

namespace spillway::layers {

using prefetch::DataId;
using prefetch::Phase;

// Saves x for the gradient of the weights, and y when a ReLU ends it. Backward, the weights'
// gradient comes first: x is not needed after it. The update comes last, since the gradient of x
// reads the old weights.
Backward forward(const nets::Convolution& layer, const Place& place, StepBuilder& step) {
  const nets::NodeId input = place.inputs[0];
  const Value x = step.value(input);
  const TensorShape y_shape{.batch = step.batch(), .image = step.network()[place.output].output};
  const ConvolutionGeometry geometry{.x = x.shape,
                                     .y = y_shape,
                                     .kernel = layer.kernel,
                                     .stride = layer.stride,
                                     .padding = layer.padding,
                                     .bias = layer.bias,
                                     .dilation = layer.dilation,
                                     .groups = layer.groups};
  const TrainedBlocks blocks = step.new_parameters(place.name, geometry.parameters());
  const DataId y = step.new_tensor(place.name + ".y", y_shape);
  step.emit(place.name + ".forward", Phase::kForward,
            ConvolutionForward{.geometry = geometry, .relu = place.relu},
            {.reads = {x.block, blocks.parameters}, .writes = {y}});
  step.set_value(place.output, {.shape = y_shape, .block = y, .is_saved = place.relu});

  return [=, &step](Gradients& gradients) {
    const Gradient dy =
        place.relu ? gradients.take_before_relu(place.output, y) : gradients.take(place.output);
    const DataId gradient = step.new_parameter_gradient(place.name, geometry.parameters());
    step.emit(place.name + ".backward_weights", Phase::kBackward,
              ConvolutionBackwardWeights{.geometry = geometry},
              {.reads = {x.block, dy.block}, .writes = {gradient}});
    DataId dx{};
    if (x.needs_gradient) {
      dx = step.new_tensor(place.name + ".dx", x.shape);
      step.emit(place.name + ".backward_data", Phase::kBackward,
                ConvolutionBackwardData{.geometry = geometry},
                {.reads = {dy.block, blocks.parameters}, .writes = {dx}});
    }
    step.emit_update(place.name, geometry.parameters(), blocks, gradient);
    gradients.contribute(input, dx);
  };
}

}  // namespace spillway::layers
