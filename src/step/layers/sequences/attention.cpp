#include "src/step/layers.h"

namespace spillway::layers {

using prefetch::DataId;
using prefetch::Phase;

namespace {

template <class Headed>
Heads heads_of(const Headed& layer) {
  return {.heads = layer.heads, .kv_heads = nets::key_heads(layer)};
}

}  // namespace

// In place where nobody else needs x. Saves nothing.
Backward forward(const nets::Rotary& layer, const Place& place, StepBuilder& step) {
  const nets::NodeId input = place.inputs[0];
  const Value x = step.value(input);
  const DataId y =
      step.may_overwrite(input) ? x.block : step.new_tensor(place.name + ".y", x.shape);
  step.emit(place.name + ".forward", Phase::kForward,
            RotaryForward{.x = x.shape, .heads = heads_of(layer), .base = layer.base},
            {.x = x.block}, {.y = y});
  step.set_value(place.output, {.shape = x.shape, .block = y});

  return [=, &step](Gradients& gradients) {
    const Gradient dy = gradients.take(place.output);
    const DataId dx = dy.may_overwrite ? dy.block : step.new_tensor(place.name + ".dx", x.shape);
    step.emit(place.name + ".backward", Phase::kBackward,
              RotaryBackward{.x = x.shape, .heads = heads_of(layer), .base = layer.base},
              {.dy = dy.block}, {.dx = dx});
    gradients.contribute(input, dx);
  };
}

// Saves x, y and a number for each head and token; never the weights.
Backward forward(const nets::Attention& layer, const Place& place, StepBuilder& step) {
  const nets::NodeId input = place.inputs[0];
  const Value x = step.value(input);
  AttentionGeometry geometry{.x = x.shape, .heads = heads_of(layer), .is_causal = layer.causal};
  if (step.is_training() && layer.dropout > 0) {
    geometry.dropout = layer.dropout;
    geometry.stream = step.next_dropout_stream();
  }
  const AttentionForward operation{.geometry = geometry};
  const DataId y = step.new_tensor(place.name + ".y", geometry.y());
  const DataId saved =
      step.new_bytes(place.name + ".saved", step.size_model().saved_bytes(operation));
  step.emit(place.name + ".forward", Phase::kForward, operation, {.x = x.block},
            {.y = y, .saved = saved});
  step.set_value(place.output, {.shape = geometry.y(), .block = y, .is_saved = true});

  return [=, &step](Gradients& gradients) {
    const Gradient dy = gradients.take(place.output);
    const DataId dx = step.new_tensor(place.name + ".dx", x.shape);
    step.emit(place.name + ".backward", Phase::kBackward, AttentionBackward{.geometry = geometry},
              {.x = x.block, .y = y, .dy = dy.block, .saved = saved}, {.dx = dx});
    gradients.contribute(input, dx);
  };
}

}  // namespace spillway::layers
