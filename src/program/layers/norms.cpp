#include <optional>

#include "src/program/layers.h"

namespace spillway::layers {
namespace {

using prefetch::DataId;
using prefetch::Phase;

Backward forward_inference(const nets::BatchNorm& layer, const Place& place, const Value& x,
                           DataId parameters, DataId running, StepBuilder& step) {
  const DataId y =
      step.may_overwrite(place.inputs[0]) ? x.block : step.new_tensor(place.name + ".y", x.shape);
  step.emit(place.name + ".forward", Phase::kForward,
            BatchNormInference{.x = x.shape, .epsilon = layer.epsilon, .relu = place.relu},
            {.x = x.block, .parameters = parameters, .running = running}, {.y = y});
  step.set_value(place.output, {.shape = x.shape, .block = y});
  return {};
}

// Saves x and a number or two of each token. Adds its gradient to that of another reader of x,
// where there is one, as where a residual connection goes around it.
Backward normalize(float epsilon, bool is_centred, const Place& place, StepBuilder& step) {
  const nets::NodeId input = place.inputs[0];
  const Value x = step.value(input);
  const RowNormForward operation{.x = x.shape, .epsilon = epsilon, .is_centred = is_centred};
  const TrainedBlocks blocks = step.new_parameters(place.name, operation.parameters());
  const DataId y = step.new_tensor(place.name + ".y", x.shape);
  const DataId saved =
      step.new_bytes(place.name + ".saved", step.size_model().saved_bytes(operation));
  step.emit(place.name + ".forward", Phase::kForward, operation,
            {.x = x.block, .parameters = blocks.parameters}, {.y = y, .saved = saved});
  step.set_value(place.output, {.shape = x.shape, .block = y});

  return [=, &step](Gradients& gradients) {
    const Gradient dy = gradients.take(place.output);
    const std::optional<DataId> sum = gradients.take_partial_sum(input);
    const DataId own =
        sum || dy.may_overwrite ? dy.block : step.new_tensor(place.name + ".dx", x.shape);
    const DataId dx = sum.value_or(own);
    const DataId gradient = step.new_parameter_gradient(place.name, operation.parameters());
    step.emit(
        place.name + ".backward", Phase::kBackward,
        RowNormBackward{.x = x.shape,
                        .epsilon = epsilon,
                        .is_centred = is_centred,
                        .accumulates = sum.has_value()},
        {.x = x.block, .dy = dy.block, .parameters = blocks.parameters, .saved = saved, .sum = dx},
        {.dx = dx, .dparameters = gradient});
    step.emit_update(place.name, operation.parameters(), blocks, gradient);
    gradients.contribute(input, dx);
  };
}

}  // namespace

// Saves x, the batch's statistics and, when a ReLU ends it, one bit an element of y; y itself is
// not needed.
Backward forward(const nets::BatchNorm& layer, const Place& place, StepBuilder& step) {
  const nets::NodeId input = place.inputs[0];
  const Value x = step.value(input);
  const std::size_t channels = x.shape.image.channels;
  const BatchNormParameters spec{.channels = channels};
  const TrainedBlocks blocks = step.new_parameters(place.name, spec);
  const DataId running = step.new_statistics(place.name, channels);
  if (!step.is_training()) {
    return forward_inference(layer, place, x, blocks.parameters, running, step);
  }

  const BatchNormForward operation{
      .x = x.shape, .epsilon = layer.epsilon, .momentum = layer.momentum, .relu = place.relu};
  const DataId y = step.new_tensor(place.name + ".y", x.shape);
  const DataId saved =
      step.new_bytes(place.name + ".saved",
                     step.size_model().parameter_bytes(BatchNormStatistics{.channels = channels}));
  const DataId mask =
      place.relu ? step.new_bytes(place.name + ".mask", step.size_model().saved_bytes(operation))
                 : DataId{};
  step.emit(place.name + ".forward", Phase::kForward, operation,
            {.x = x.block, .parameters = blocks.parameters},
            {.y = y, .saved = saved, .running = running, .mask = mask}, running);
  step.set_value(place.output, {.shape = x.shape, .block = y});

  return [=, &step](Gradients& gradients) {
    const Gradient dy = gradients.take(place.output);
    const DataId dx = dy.may_overwrite ? dy.block : step.new_tensor(place.name + ".dx", x.shape);
    const DataId gradient = step.new_parameter_gradient(place.name, spec);
    step.emit(place.name + ".backward", Phase::kBackward,
              BatchNormBackward{.x = x.shape, .epsilon = layer.epsilon, .relu = place.relu},
              {.x = x.block,
               .dy = dy.block,
               .parameters = blocks.parameters,
               .saved = saved,
               .mask = mask},
              {.dx = dx, .dparameters = gradient});
    step.emit_update(place.name, spec, blocks, gradient);
    gradients.contribute(input, dx);
  };
}

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

Backward forward(const nets::LayerNorm& layer, const Place& place, StepBuilder& step) {
  return normalize(layer.epsilon, /*is_centred=*/true, place, step);
}
Backward forward(const nets::RmsNorm& layer, const Place& place, StepBuilder& step) {
  return normalize(layer.epsilon, /*is_centred=*/false, place, step);
}

}  // namespace spillway::layers
