#include "src/program/step.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_set>
#include <variant>
#include <vector>

#include "prefetch/block_sizes.h"
#include "src/program/gradients.h"
#include "src/program/layers.h"
#include "src/program/passes.h"
#include "src/program/step_builder.h"
#include "um/error.h"

namespace spillway {
namespace {

template <typename Part>
void expect_unique(const std::vector<Part>& parts, const nets::Network& network) {
  std::unordered_set<std::string_view> names;
  for (const Part& part : parts) {
    if (names.insert(part.name).second) continue;
    throw um::Error{"the layers of network " + network.name +
                    " make two parts of its step called '" + part.name +
                    "'; give one of the layers another name"};
  }
}

Step make_step(const nets::Network& network, const SizeModel& size_model,
               const StepOptions& options, Purpose purpose) {
  StepBuilder step{network, size_model, options, purpose};
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
    step.emit_clipped_updates();
  }
  Step made = step.take_step();
  if (purpose == Purpose::kTraining) freeze_layers(made, options.frozen);
  expect_unique_names(made, network);
  return made;
}

// What is said of the samples is read when the step has ended, so that it must be too small to be
// moved in any page (BlockSizes).
std::size_t most_judged(const nets::Network& network, const StepOptions& options) {
  const TensorShape logits{.batch = 1, .image = network.nodes.back().output};
  if (std::holds_alternative<nets::VocabularyLoss>(network.nodes.back().layer) ||
      logits.image.height * logits.image.width != 1) {
    return options.batch;
  }
  const SoftmaxCrossEntropyEvaluate one{.x = logits, .gives_logits = options.gives_logits};
  const std::size_t floats = one.judged_floats() + one.given_logits();
  const um::Bytes most = prefetch::largest_small(prefetch::kLargestPage);
  const std::size_t room = most.count() / sizeof(float) - 2;  // behind the first two
  if (floats > room) {
    throw um::Error{"the logits of an image of " + std::to_string(network.classes()) +
                    " classes are too many to be kept: at most " +
                    std::to_string(room - one.judged_floats()) +
                    " are; leave out --top and --logits"};
  }
  return std::min(options.batch, room / floats);
}

}  // namespace

um::Bytes step_page(const prefetch::TaskGraph& graph, const SizeModel& size_model) {
  return std::max(prefetch::choose_page(graph), size_model.smallest_page());
}

void insert_task(Step& step, std::size_t place, prefetch::Task task, Launch launch) {
  const auto shift = [place](prefetch::TaskId& id) {
    const auto index = static_cast<std::size_t>(id);
    if (index >= place) id = prefetch::TaskId(index + 1);
  };
  for (prefetch::Task& each : step.graph.tasks) std::ranges::for_each(each.after, shift);
  for (prefetch::GradientExchange& exchange : step.graph.exchanges) shift(exchange.ready);
  const auto at = static_cast<std::ptrdiff_t>(place);
  step.graph.tasks.insert(step.graph.tasks.begin() + at, std::move(task));
  step.launches.insert(step.launches.begin() + at, std::move(launch));
}

void expect_unique_names(const Step& step, const nets::Network& network) {
  expect_unique(step.graph.data, network);
  expect_unique(step.graph.tasks, network);
}

Step make_training_step(const nets::Network& network, const SizeModel& size_model,
                        const StepOptions& options) {
  return make_step(network, size_model, options, Purpose::kTraining);
}

Step make_evaluation_step(const nets::Network& network, const SizeModel& size_model,
                          const StepOptions& options) {
  const nets::Network evaluated = nets::without_auxiliary_heads(network);
  StepOptions own = options;
  own.batch = most_judged(evaluated, options);
  return make_step(evaluated, size_model, own, Purpose::kEvaluation);
}

Step make_sampling_step(const nets::Network& network, const SizeModel& size_model,
                        const StepOptions& options) {
  um::expects(std::holds_alternative<nets::VocabularyLoss>(network.nodes.back().layer),
              "a loss over a vocabulary");
  return make_step(network, size_model, options, Purpose::kSampling);
}

}  // namespace spillway
