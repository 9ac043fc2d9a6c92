#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "prefetch/far_update.h"
#include "src/program/passes.h"

namespace spillway {
namespace {

using prefetch::DataId;
using prefetch::Task;

constexpr std::string_view kUpdateName = ".update";  // behind a layer's

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
    insert_task(step, t,
                {.name = std::move(name),
                 .phase = prefetch::Phase::kUpdate,
                 .reads = {sum},
                 .writes = {copy},
                 .traffic = cost_of(take).traffic},
                {.operation = take, .operands = {sum, copy}});
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

}  // namespace

void let_state_move(Step& step) {
  for (const StateBlock& block : step.state) {
    if (block.role == StateRole::kStatistics) continue;
    for (const prefetch::DataId id : block.ids) {
      step.graph.data[static_cast<std::size_t>(id)].is_offloadable = true;
    }
  }
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

}  // namespace spillway
