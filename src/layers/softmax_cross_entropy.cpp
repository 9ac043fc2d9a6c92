#include "src/layers/layers.h"

namespace spillway::layers {

using prefetch::DataId;
using prefetch::Phase;

// The loss and the gradient of the logits in one task, over the logits.
Backward forward(const nets::SoftmaxCrossEntropy& /*layer*/, const Place& place,
                 StepBuilder& step) {
  const nets::NodeId input = place.inputs[0];
  const Value logits = step.value(input);
  const DataId result = step.new_bytes("result", float_bytes(2));
  step.set_result(result);
  if (!step.is_training()) {
    step.emit(place.name + ".forward", Phase::kForward,
              SoftmaxCrossEntropyEvaluate{.x = logits.shape},
              {.reads = {logits.block, step.labels()}, .writes = {result}});
    return {};
  }
  const DataId gradient =
      step.may_overwrite(input) ? logits.block : step.new_tensor(place.name + ".dx", logits.shape);
  step.emit(place.name + ".forward", Phase::kForward, SoftmaxCrossEntropyTrain{.x = logits.shape},
            {.reads = {logits.block, step.labels()}, .writes = {result, gradient}});
  return [=](Gradients& gradients) { gradients.contribute(input, gradient); };
}

}  // namespace spillway::layers
