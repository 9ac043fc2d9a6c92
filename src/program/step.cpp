#include "src/program/step.h"

#include <fnmatch.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/far_update.h"
#include "prefetch/update_order.h"
#include "src/program/gradients.h"
#include "src/program/layers.h"
#include "src/program/step_builder.h"
#include "um/error.h"

namespace spillway {
namespace {

using prefetch::DataId;
using prefetch::Task;

constexpr std::string_view kUpdateName = ".update";  // behind a layer's

// By task, from the last one back: it writes state or the result, or what a task behind it reads.
std::vector<bool> read_tasks(const Step& step) {
  const prefetch::TaskGraph& graph = step.graph;
  std::vector<bool> is_read(graph.data.size(), false);
  for (const DataId id : step.results) is_read[index_of(id)] = true;
  for (const StateBlock& block : step.state) {
    for (const DataId id : block.ids) is_read[index_of(id)] = true;
  }
  std::vector<bool> is_kept(graph.tasks.size(), true);
  for (std::size_t t = graph.tasks.size(); t-- > 0;) {
    const Task& task = graph.tasks[t];
    is_kept[t] = task.phase != prefetch::Phase::kBackward ||
                 std::ranges::any_of(task.writes, [&](DataId id) { return is_read[index_of(id)]; });
    if (!is_kept[t]) continue;
    for (const DataId id : task.reads) is_read[index_of(id)] = true;
  }
  return is_kept;
}

void keep_tasks(Step& step, const std::vector<bool>& is_kept) {
  std::vector<Task> tasks;
  std::vector<Launch> launches;
  for (std::size_t t = 0; t < is_kept.size(); ++t) {
    if (!is_kept[t]) continue;
    tasks.push_back(std::move(step.graph.tasks[t]));
    launches.push_back(std::move(step.launches[t]));
  }
  step.graph.tasks = std::move(tasks);
  step.launches = std::move(launches);
}

// Calls `use` with a reference to every mention of a block but those by tensors.
template <class Use>
void for_each_mention(Step& step, const Use& use) {
  const auto all = [&](std::vector<DataId>& ids) { std::ranges::for_each(ids, use); };
  for (Task& task : step.graph.tasks) {
    all(task.reads);
    all(task.writes);
    all(task.updates_once);
  }
  for (Launch& launch : step.launches) all(launch.operands);
  for (StateBlock& block : step.state) all(block.ids);
  all(step.gradients);
  all(step.results);
  if (step.staged) use(*step.staged);
}

void drop_unused_blocks(Step& step) {
  std::vector<bool> is_used(step.graph.data.size(), false);
  for_each_mention(step, [&](DataId& id) { is_used[index_of(id)] = true; });
  std::vector<DataId> numbers(is_used.size());
  std::vector<prefetch::DataBlock> blocks;
  for (std::size_t i = 0; i < is_used.size(); ++i) {
    if (!is_used[i]) continue;
    numbers[i] = DataId{static_cast<std::uint32_t>(blocks.size())};
    blocks.push_back(std::move(step.graph.data[i]));
  }
  step.graph.data = std::move(blocks);
  for_each_mention(step, [&](DataId& id) { id = numbers[index_of(id)]; });
}

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

// Throws um::Error unless each pattern freezes something, and all together leave something.
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

std::unordered_set<std::string> names_of_far_updates(const Step& step, um::Bytes page) {
  std::unordered_set<std::string> names;
  for (const prefetch::TaskId task : prefetch::far_updatable(step.graph, page)) {
    names.insert(step.graph[task].name);
  }
  return names;
}

// Gives these updates a copy of the gradient that ranks have exchanged: "fc1.send" makes it.
void copy_sums(Step& step, const std::function<bool(const Task&)>& is_wanted) {
  prefetch::TaskGraph& graph = step.graph;
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
    const auto* const update = std::get_if<UpdateParameters>(&step.launches[t].operation);
    if (update == nullptr || update->part.slice || !is_wanted(graph.tasks[t])) continue;
    DataId& gradient = step.launches[t].operands[update->gradient_place()];
    const DataId sum = gradient;
    const um::Bytes size = graph[sum].size;
    const DataId copy =
        graph.add(prefetch::DataBlock{.name = graph[sum].name + ".sent", .size = size});
    gradient = copy;
    std::ranges::replace(graph.tasks[t].reads, sum, copy);
    // Numbers without a layout of their own.
    const TakeParameters take{.parameters = BiasParameters{size.count() / sizeof(float)}};
    std::string name = graph.tasks[t].name;
    name.replace(name.rfind(kUpdateName), kUpdateName.size(), ".send");
    graph.tasks.insert(graph.tasks.begin() + static_cast<std::ptrdiff_t>(t),
                       Task{.name = std::move(name),
                            .phase = prefetch::Phase::kUpdate,
                            .reads = {sum},
                            .writes = {copy},
                            .traffic = cost_of(take).traffic});
    step.launches.insert(step.launches.begin() + static_cast<std::ptrdiff_t>(t),
                         Launch{.operation = take, .operands = {sum, copy}});
    for (prefetch::GradientExchange& exchange : graph.exchanges) {
      const auto ready = static_cast<std::size_t>(exchange.ready);
      if (ready >= t) exchange.ready = prefetch::TaskId(ready + 1);
    }
    ++t;  // the update
  }
}

// The far side takes a copy of a sum that ranks have exchanged, as that lies near.
void send_sums(Step& step, um::Bytes page) {
  Step all = step;
  copy_sums(all, [](const Task&) { return true; });
  const auto names = names_of_far_updates(all, page);
  copy_sums(step, [&](const Task& task) { return names.contains(task.name); });
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

void drop_unread_tasks(Step& step) {
  um::expects(step.graph.far_updates.empty() && step.far_launches.empty(), "a step that runs near");
  keep_tasks(step, read_tasks(step));
  drop_unused_blocks(step);
}

FrozenParameters count_frozen(const Step& training) {
  FrozenParameters frozen;
  const std::vector<StateBlock>& state = training.state;
  for (std::size_t i = 0; i < state.size(); ++i) {
    if (state[i].role != StateRole::kParameters) continue;
    const bool is_trained = i + 1 < state.size() && state[i + 1].role == StateRole::kOptimizer;
    if (is_trained) continue;
    frozen.parameters += element_count(state[i].spec);
    ++frozen.layers;
  }
  return frozen;
}

bool is_layer_of(const std::string& pattern, const std::string& layer) {
  return fnmatch(pattern.c_str(), layer.c_str(), 0) == 0;
}

void exchange_gradients(Step& step, const prefetch::BucketRule& rule) {
  step.graph = prefetch::with_exchanges(std::move(step.graph), rule);
  step.gradients.clear();
  for (prefetch::GradientExchange& exchange : step.graph.exchanges) {
    if (!exchange.is_of_gradients()) continue;
    step.gradients.insert(step.gradients.end(), exchange.blocks.begin(), exchange.blocks.end());
    for (const WaitingSum& waiting : step.waiting) {
      const bool is_part = std::ranges::count(exchange.blocks, waiting.sum) > 0;
      if (is_part) exchange.waiting.push_back(waiting.block);
    }
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
  if (!step.graph.exchanges.empty()) send_sums(step, page);
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
