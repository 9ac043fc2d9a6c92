#include "src/step/step.h"

#include <fnmatch.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/far_update.h"
#include "prefetch/update_order.h"
#include "src/step/fusion.h"
#include "src/step/gradients.h"
#include "src/step/layers.h"
#include "src/step/step_builder.h"
#include "src/step/unread_tasks.h"
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

// Of patterns that were given, each freezes something, and not all together everything.
void expect_frozen_in_part(const Step& training, const std::vector<std::string>& patterns) {
  for (const std::string& pattern : patterns) {
    const bool freezes = std::ranges::any_of(training.state, [&](const StateBlock& block) {
      return block.role == StateRole::kParameters && is_layer_of(pattern, block.name);
    });
    if (!freezes) {
      throw um::Error{"no layer with parameters is called '" + pattern +
                      "', which is to be frozen; spillway nets NAME --dump FILE lists the layers"};
    }
  }
  if (patterns.empty()) return;
  const bool has_trained = std::ranges::any_of(
      training.state, [](const StateBlock& block) { return block.role == StateRole::kOptimizer; });
  if (!has_trained) throw um::Error{"all layers are frozen: nothing is left to train"};
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
  if (purpose == Purpose::kTraining && !options.frozen.empty()) {
    expect_frozen_in_part(made, options.frozen);
    drop_unread_tasks(made);
  }
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

void order_updates(Step& step) {
  const std::vector<prefetch::TaskId> order = prefetch::update_order(step.graph);
  std::vector<Launch> launches;
  launches.reserve(order.size());
  for (const prefetch::TaskId task : order) {
    launches.push_back(std::move(step.launches[static_cast<std::size_t>(task)]));
  }
  step.launches = std::move(launches);
  step.graph = prefetch::in_order(std::move(step.graph), order);
}

}  // namespace

bool is_layer_of(const std::string& pattern, const std::string& layer) {
  return fnmatch(pattern.c_str(), layer.c_str(), 0) == 0;
}

void exchange_gradients(Step& step, const prefetch::BucketRule& rule) {
  step.graph = prefetch::with_exchanges(std::move(step.graph), rule);
  step.gradients.clear();
  for (const prefetch::GradientExchange& exchange : step.graph.exchanges) {
    if (!exchange.is_of_gradients()) continue;
    step.gradients.insert(step.gradients.end(), exchange.blocks.begin(), exchange.blocks.end());
  }
  std::ranges::sort(step.gradients);
  order_updates(step);
}

void regroup_gradients(Step& step, const prefetch::BucketRule& rule) {
  um::expects(!step.graph.exchanges.empty(), "a step of several ranks");
  step.graph.exchanges.clear();
  exchange_gradients(step, rule);
}

void let_state_move(Step& step) {
  for (const StateBlock& block : step.state) {
    if (block.role == StateRole::kStatistics) continue;
    for (const prefetch::DataId id : block.ids) {
      step.graph.data[static_cast<std::size_t>(id)].is_offloadable = true;
    }
  }
  if (!step.graph.exchanges.empty()) order_updates(step);
}

void update_far(Step& step, um::Bytes page) {
  const std::vector<prefetch::TaskId> updates = prefetch::far_updatable(step.graph, page);
  std::vector<bool> is_far(step.launches.size(), false);
  for (const prefetch::TaskId task : updates) {
    const auto index = static_cast<std::size_t>(task);
    is_far[index] = true;
    step.far_launches.push_back(std::move(step.launches[index]));
  }
  std::vector<Launch> near;
  for (std::size_t t = 0; t < is_far.size(); ++t) {
    if (!is_far[t]) near.push_back(std::move(step.launches[t]));
  }
  step.launches = std::move(near);
  step.graph = prefetch::with_far_updates(std::move(step.graph), updates);
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
