#include "src/step/layers.h"

namespace spillway::layers {

using prefetch::DataId;
using prefetch::Phase;

// The loss and the gradient of the logits in one task, over the logits. Where there are several,
// each adds its loss to those before; the last, the network's own, counts what is right.
Backward forward(const nets::SoftmaxCrossEntropy& layer, const Place& place, StepBuilder& step) {
  const nets::NodeId input = place.inputs[0];
  const Value logits = step.value(input);
  const bool accumulates = step.result().has_value();
  const nets::Shape& image = logits.shape.image;
  const SoftmaxCrossEntropyEvaluate evaluation{
      .x = logits.shape, .gives_logits = step.gives_logits() && image.height * image.width == 1};
  const std::size_t judged =
      step.is_training() ? 0 : evaluation.judged_floats() + evaluation.given_logits();
  if (!accumulates) step.set_result(step.new_bytes("result", float_bytes(2 + judged)));
  const DataId result = *step.result();
  if (!step.is_training()) {
    step.set_judged(evaluation);
    step.emit(place.name + ".forward", Phase::kForward, evaluation,
              {.logits = logits.block, .labels = step.labels_of(logits.shape)}, {.result = result});
    return {};
  }
  const DataId gradient =
      step.may_overwrite(input) ? logits.block : step.new_tensor(place.name + ".dx", logits.shape);
  step.emit(place.name + ".forward", Phase::kForward,
            SoftmaxCrossEntropyTrain{.x = logits.shape,
                                     .weight = layer.weight,
                                     .accumulates = accumulates,
                                     .smoothing = step.label_smoothing()},
            {.logits = logits.block, .labels = step.labels_of(logits.shape), .result = result},
            {.result = result, .dlogits = gradient});
  return [=](Gradients& gradients) { gradients.contribute(input, gradient); };
}

}  // namespace spillway::layers
