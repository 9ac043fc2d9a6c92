#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "src/program/layers.h"

namespace spillway::layers {
namespace {

using prefetch::DataId;
using prefetch::Phase;

// One task for all parts, each of which gets its channels of dy: added to what other readers of the
// part have contributed, where there is something.
void go_back(const Place& place, const TensorShape& y, StepBuilder& step, Gradients& gradients) {
  ConcatBackward operation{.y = y, .slices = {}};
  const DataId dy = gradients.take(place.output).block;
  std::vector<DataId> sums;
  std::vector<DataId> written;
  std::vector<std::pair<nets::NodeId, DataId>> parts;
  std::size_t first_channel = 0;
  for (std::size_t i = 0; i < place.inputs.size(); ++i) {
    const nets::NodeId input = place.inputs[i];
    const Value x = step.value(input);
    if (x.needs_gradient) {
      const std::optional<DataId> sum = gradients.take_partial_sum(input);
      if (sum) sums.push_back(*sum);
      const std::string name = place.name + ".dx" + std::to_string(i + 1);
      parts.emplace_back(input, sum ? *sum : step.new_tensor(name, x.shape));
      operation.slices.push_back(
          {.x = x.shape, .first_channel = first_channel, .accumulates = sum.has_value()});
      written.push_back(parts.back().second);
    }
    first_channel += x.shape.image.channels;
  }
  step.emit(place.name + ".backward", Phase::kBackward, operation, {.dy = dy, .sums = sums},
            {.parts = written});
  for (const auto& [input, dx] : parts) gradients.contribute(input, dx);
}

}  // namespace

// Copies what it reads and saves nothing. (To make each part in its place within y would need
// blocks that are parts of blocks.)
Backward forward(const nets::Concat& /*layer*/, const Place& place, StepBuilder& step) {
  ConcatForward operation;
  std::vector<DataId> reads;
  bool needs_gradient = false;
  for (const nets::NodeId input : place.inputs) {
    const Value& x = step.value(input);
    operation.parts.push_back(x.shape);
    reads.push_back(x.block);
    needs_gradient = needs_gradient || x.needs_gradient;
  }
  const TensorShape y_shape = operation.whole();
  const DataId y = step.new_tensor(place.name + ".y", y_shape);
  step.emit(place.name + ".forward", Phase::kForward, operation, {.parts = reads}, {.y = y});
  step.set_value(place.output, {.shape = y_shape, .block = y, .needs_gradient = needs_gradient});

  if (!needs_gradient) return {};
  return [=, &step](Gradients& gradients) { go_back(place, y_shape, step, gradients); };
}

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

// No task: the value keeps its shape, and the layer that reads it takes all its elements.
Backward forward(const nets::Flatten& /*layer*/, const Place& place, StepBuilder& step) {
  const nets::NodeId input = place.inputs[0];
  Value same = step.value(input);
  same.is_saved = !step.may_overwrite(input);
  step.set_value(place.output, same);
  if (!same.needs_gradient) return {};
  return [=](Gradients& gradients) {
    gradients.contribute(input, gradients.take(place.output).block);
  };
}

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
