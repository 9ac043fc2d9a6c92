#include <array>
#include <optional>
#include <variant>

#include "src/program/layers.h"

namespace spillway::layers {
namespace {

using prefetch::DataId;
using prefetch::Phase;

// True when the layer writes the gradient of what it reads over the gradient of what it makes,
// where nobody else needs that.
bool writes_over_gradient(const nets::Layer& layer) {
  if (const auto* const dropout = std::get_if<nets::Dropout>(&layer)) {
    return dropout->probability > 0;
  }
  return std::holds_alternative<nets::BatchNorm>(layer) ||
         std::holds_alternative<nets::Relu>(layer) || std::holds_alternative<nets::Gelu>(layer) ||
         std::holds_alternative<nets::LocalResponseNorm>(layer) ||
         std::holds_alternative<nets::LayerNorm>(layer) ||
         std::holds_alternative<nets::RmsNorm>(layer);
}

// One block for both sides.
std::array<DataId, 2> take_once(Gradients& gradients, nets::NodeId node,
                                const std::optional<ReluOutput>& relu) {
  const Gradient dy = relu ? gradients.take_before_relu(node, *relu) : gradients.take(node);
  return {dy.block, dy.block};
}

}  // namespace

// Over one of its inputs where nobody else needs that. Saves one bit an element of y when a ReLU
// ends it, else nothing. Both sides get the same gradient: each in a block of its own where one of
// them writes over it, so that it needs no other.
Backward forward(const nets::Add& /*layer*/, const Place& place, StepBuilder& step) {
  nets::NodeId a = place.inputs[0];
  nets::NodeId b = place.inputs[1];
  if (!step.may_overwrite(a)) std::swap(a, b);
  const Value x = step.value(a);
  const bool both_need_gradients = x.needs_gradient && step.value(b).needs_gradient;
  const bool needs_gradient = x.needs_gradient || step.value(b).needs_gradient;
  const DataId y = step.may_overwrite(a) ? x.block : step.new_tensor(place.name + ".y", x.shape);
  const AddForward operation{.x = x.shape,
                             .relu = place.relu,
                             .saves_mask = place.relu && needs_gradient && step.is_training()};
  const DataId mask =
      operation.saves_mask
          ? step.new_bytes(place.name + ".mask", step.size_model().saved_bytes(operation))
          : DataId{};
  step.emit(place.name + ".forward", Phase::kForward, operation,
            {.a = x.block, .b = step.value(b).block}, {.y = y, .mask = mask});
  step.set_value(place.output, {.shape = x.shape, .block = y, .needs_gradient = needs_gradient});

  if (!needs_gradient) return {};
  const auto overwrites = [&](nets::NodeId side) {
    return writes_over_gradient(step.network()[side].layer);
  };
  const bool in_two_blocks = both_need_gradients && (overwrites(a) || overwrites(b));
  return [=](Gradients& gradients) {
    std::optional<ReluOutput> relu;
    if (place.relu) relu = ReluOutput{.block = mask, .is_mask = true};
    const std::array<DataId, 2> dy = in_two_blocks ? gradients.take_twice(place.output, relu)
                                                   : take_once(gradients, place.output, relu);
    gradients.contribute(a, dy[0]);
    gradients.contribute(b, dy[1]);
  };
}

// In place where nobody else needs x. Saves y.
Backward forward(const nets::Relu& /*layer*/, const Place& place, StepBuilder& step) {
  const nets::NodeId input = place.inputs[0];
  const Value x = step.value(input);
  const DataId y =
      step.may_overwrite(input) ? x.block : step.new_tensor(place.name + ".y", x.shape);
  step.emit(place.name + ".forward", Phase::kForward, ReluForward{.x = x.shape}, {.x = x.block},
            {.y = y});
  step.set_value(
      place.output,
      {.shape = x.shape, .block = y, .needs_gradient = x.needs_gradient, .is_saved = true});

  if (!x.needs_gradient) return {};
  return [=](Gradients& gradients) {
    const Gradient dx = gradients.take_before_relu(place.output, {.block = y});
    gradients.contribute(input, dx.block);
  };
}

// Saves x, from which the way back computes the slope.
Backward forward(const nets::Gelu& layer, const Place& place, StepBuilder& step) {
  const nets::NodeId input = place.inputs[0];
  const Value x = step.value(input);
  const DataId y = step.new_tensor(place.name + ".y", x.shape);
  step.emit(place.name + ".forward", Phase::kForward, GeluForward{.x = x.shape, .tanh = layer.tanh},
            {.x = x.block}, {.y = y});
  step.set_value(place.output, {.shape = x.shape, .block = y, .needs_gradient = x.needs_gradient});

  if (!x.needs_gradient) return {};
  return [=, &step](Gradients& gradients) {
    const Gradient dy = gradients.take(place.output);
    const DataId dx = dy.may_overwrite ? dy.block : step.new_tensor(place.name + ".dx", x.shape);
    step.emit(place.name + ".backward", Phase::kBackward,
              GeluBackward{.x = x.shape, .tanh = layer.tanh}, {.x = x.block, .dy = dy.block},
              {.dx = dx});
    gradients.contribute(input, dx);
  };
}

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
