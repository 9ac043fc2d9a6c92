#include "src/ops/weighted_operations.h"
#include "src/step/layers.h"

namespace spillway::layers {

using prefetch::DataId;
using prefetch::Phase;

namespace {

// The operations of a convolution, and of a transposed one.
struct Plain {
  using Forward = ConvolutionForward;
  using BackwardData = ConvolutionBackwardData;
  using BackwardWeights = ConvolutionBackwardWeights;
};
struct Transposed {
  using Forward = TransposedConvolutionForward;
  using BackwardData = TransposedConvolutionBackwardData;
  using BackwardWeights = TransposedConvolutionBackwardWeights;
};

// Saves x for the gradient of the weights, and y when a ReLU ends it. Backward, the weights'
// gradient comes first: x is not needed after it. The update comes last, since the gradient of x
// reads the old weights.
template <class Operations, class Layer>
Backward convolve(const Layer& layer, const Place& place, StepBuilder& step) {
  const nets::NodeId input = place.inputs[0];
  const Value x = step.value(input);
  const auto geometry = geometry_of(
      layer, x.shape, {.batch = step.batch(), .image = step.network()[place.output].output});
  const TrainedBlocks blocks = step.new_parameters(place.name, geometry.parameters());
  const DataId y = step.new_tensor(place.name + ".y", geometry.y);
  step.emit(place.name + ".forward", Phase::kForward,
            typename Operations::Forward{.geometry = geometry, .relu = place.relu},
            {.x = x.block, .parameters = blocks.parameters}, {.y = y});
  step.set_value(place.output, {.shape = geometry.y, .block = y, .is_saved = place.relu});

  return [=, &step](Gradients& gradients) {
    const Gradient dy = place.relu ? gradients.take_before_relu(place.output, {.block = y})
                                   : gradients.take(place.output);
    const DataId gradient = step.new_parameter_gradient(place.name, geometry.parameters());
    step.emit(place.name + ".backward_weights", Phase::kBackward,
              typename Operations::BackwardWeights{.geometry = geometry},
              {.x = x.block, .dy = dy.block}, {.dparameters = gradient});
    DataId dx{};
    if (x.needs_gradient) {
      dx = step.new_tensor(place.name + ".dx", x.shape);
      step.emit(place.name + ".backward_data", Phase::kBackward,
                typename Operations::BackwardData{.geometry = geometry},
                {.dy = dy.block, .parameters = blocks.parameters}, {.dx = dx});
    }
    step.emit_update(place.name, geometry.parameters(), blocks, gradient);
    gradients.contribute(input, dx);
  };
}

}  // namespace

Backward forward(const nets::Convolution& layer, const Place& place, StepBuilder& step) {
  return convolve<Plain>(layer, place, step);
}

Backward forward(const nets::TransposedConvolution& layer, const Place& place, StepBuilder& step) {
  return convolve<Transposed>(layer, place, step);
}

}  // namespace spillway::layers
