#include "src/step.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "src/fusion.h"
#include "src/gradients.h"
#include "src/layers/layers.h"
#include "src/step_builder.h"

namespace spillway {
namespace {

Step make_step(const nets::Network& network, const Sizing& sizing, const StepOptions& options,
               Purpose purpose) {
  StepBuilder step{network, sizing, options, purpose};
  step.emit_load();
  std::vector<layers::Backward> way_back;
  for (const FusedLayer& layer : fuse(network)) {
    const nets::Node& node = network[layer.node];
    const layers::Place place{
        .name = node.name, .inputs = node.inputs, .output = layer.output, .relu = layer.relu};
    way_back.push_back(std::visit(
        [&](const auto& spec) { return layers::forward(spec, place, step); }, node.layer));
  }
  if (purpose == Purpose::kTraining) {
    Gradients gradients{step};
    std::for_each(way_back.rbegin(), way_back.rend(), [&](const layers::Backward& backward) {
      if (backward) backward(gradients);
    });
  }
  return step.take_step();
}

}  // namespace

Step make_training_step(const nets::Network& network, const Sizing& sizing,
                        const StepOptions& options) {
  return make_step(network, sizing, options, Purpose::kTraining);
}

Step make_evaluation_step(const nets::Network& network, const Sizing& sizing,
                          const StepOptions& options) {
  return make_step(nets::without_auxiliary_heads(network), sizing, options, Purpose::kEvaluation);
}

}  // namespace spillway
