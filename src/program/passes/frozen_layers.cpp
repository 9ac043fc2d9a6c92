#include <fnmatch.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "prefetch/task_graph.h"
#include "src/program/passes.h"
#include "um/error.h"

namespace spillway {
namespace {

using prefetch::DataId;
using prefetch::Task;

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
  const bool has_trained = std::ranges::any_of(
      training.state, [](const StateBlock& block) { return block.role == StateRole::kOptimizer; });
  if (!has_trained) throw um::Error{"all layers are frozen: nothing is left to train"};
}

}  // namespace

void freeze_layers(Step& training, const std::vector<std::string>& patterns) {
  if (patterns.empty()) return;
  expect_frozen_in_part(training, patterns);
  keep_tasks(training, read_tasks(training));
  drop_unused_blocks(training);
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

}  // namespace spillway
