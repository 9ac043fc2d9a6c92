#include "src/ops/weighted_operations.h"
#include "src/program/layers.h"

namespace spillway::layers {
namespace {

using prefetch::DataId;
using prefetch::Phase;

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

// Saves x, and y when a ReLU ends it. Backward, the gradient of x comes first: the gradient of the
// weights, as large as the weights, need not live through it. That of a large layer comes in parts,
// each of which is used up before the next.
Backward forward(const nets::Linear& layer, const Place& place, StepBuilder& step) {
  const nets::NodeId input = place.inputs[0];
  const Value x = step.value(input);
  const TensorShape y_shape{.batch = step.batch(), .image = step.network()[place.output].output};
  // Tokens are as many vectors.
  const bool is_sequence = x.shape.image.form == nets::Form::kSequence;
  const LinearGeometry geometry{.x = is_sequence ? rows_of(x.shape) : x.shape,
                                .features = layer.features,
                                .bias = layer.bias};
  const TrainedBlocks blocks = step.new_parameters(place.name, geometry.parameters());
  const DataId y = step.new_tensor(place.name + ".y", y_shape);
  step.emit(place.name + ".forward", Phase::kForward,
            LinearForward{.geometry = geometry, .relu = place.relu},
            {.x = x.block, .parameters = blocks.parameters}, {.y = y});
  step.set_value(place.output, {.shape = y_shape, .block = y, .is_saved = place.relu});

  return [=, &step](Gradients& gradients) {
    const Gradient dy = place.relu ? gradients.take_before_relu(place.output, {.block = y})
                                   : gradients.take(place.output);
    DataId dx{};
    if (x.needs_gradient) {
      dx = step.new_tensor(place.name + ".dx", x.shape);
      step.emit(place.name + ".backward_data", Phase::kBackward,
                LinearBackwardData{.geometry = geometry},
                {.dy = dy.block, .parameters = blocks.parameters}, {.dx = dx});
    }
    const std::size_t parts = blocks.optimizer.size();
    for (std::size_t i = 0; i < parts; ++i) {
      const ParameterPart part{.index = i, .count = parts};
      const DataId gradient = step.new_parameter_gradient(place.name, geometry.parameters(), part);
      step.emit(place.name + ".backward_weights" + suffix_of(part), Phase::kBackward,
                LinearBackwardWeights{.geometry = geometry, .part = part},
                {.x = x.block, .dy = dy.block}, {.dparameters = gradient});
      step.emit_update(place.name, geometry.parameters(), blocks, gradient, part);
    }
    gradients.contribute(input, dx);
  };
}

}  // namespace spillway::layers
