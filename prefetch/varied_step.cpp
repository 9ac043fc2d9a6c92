#include "prefetch/varied_step.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "prefetch/block_sizes.h"
#include "prefetch/liveness.h"
#include "prefetch/plan.h"
#include "um/error.h"

namespace spillway::prefetch {
namespace {

using um::Bytes;
using um::Nanoseconds;

std::size_t index(TaskId task) { return static_cast<std::size_t>(task); }
std::size_t index(DataId block) { return static_cast<std::size_t>(block); }

void add_missing(std::vector<DataId>& ids, const std::vector<DataId>& more) {
  for (const DataId id : more) {
    if (std::ranges::count(ids, id) == 0) ids.push_back(id);
  }
}

// Makes `task` run in `variant`.
void apply(const TaskGraph& graph, const TaskVariant& variant, Task& task) {
  add_missing(task.reads, variant.reads);
  add_missing(task.writes, variant.writes);
  task.algorithms = variant.algorithms;
  task.traffic = {};
  for (const auto* const ids : {&task.reads, &task.writes}) {
    for (const DataId id : *ids) task.traffic += graph[id].size;
  }
}

// Returns by block whether it is in `graph`'s tasks, or no variant mentions it either.
std::vector<bool> find_needed(const TaskGraph& graph, const std::vector<VariantGroup>& groups) {
  std::vector<bool> is_needed(graph.data.size(), true);
  for (const VariantGroup& group : groups) {
    for (const VariantGroup::Member& member : group.members) {
      for (const TaskVariant& variant : member.variants) {
        for (const auto* const ids : {&variant.reads, &variant.writes}) {
          for (const DataId id : *ids) {
            if (graph[id].kind == DataKind::kTensor) is_needed[index(id)] = false;
          }
        }
      }
    }
  }
  for (const Task& task : graph.tasks) {
    for_each_operand(task, [&](DataId id) { is_needed[index(id)] = true; });
  }
  return is_needed;
}

// Keeps the blocks that are needed.
void drop_others(const std::vector<bool>& is_needed, TaskGraph& graph) {
  std::vector<DataBlock> kept;
  std::vector<DataId> places(graph.data.size());
  for (std::size_t i = 0; i < graph.data.size(); ++i) {
    places[i] = DataId(kept.size());
    if (is_needed[i]) kept.push_back(std::move(graph.data[i]));
  }
  graph.data = std::move(kept);
  for (Task& task : graph.tasks) {
    for (auto* const ids : {&task.reads, &task.writes}) {
      for (DataId& id : *ids) id = places[index(id)];
    }
  }
}

// Returns the place of `name` in `names`, or their number if it is not there.
std::size_t number_of(const std::vector<std::string>& names, const std::string& name) {
  return static_cast<std::size_t>(std::ranges::find(names, name) - names.begin());
}

// Returns the choice of the least by `cost`, of a group and a variant; the first among equals.
template <class Cost>
VariantChoice least(const std::vector<VariantGroup>& groups, const Cost& cost) {
  VariantChoice choice;
  for (const VariantGroup& group : groups) {
    std::uint32_t best = 0;
    for (std::uint32_t v = 1; v < group.names.size(); ++v) {
      if (cost(group, v) < cost(group, best)) best = v;
    }
    choice.push_back(best);
  }
  return choice;
}

}  // namespace

Nanoseconds VariantGroup::time(std::size_t variant) const {
  Nanoseconds sum{0};
  for (const Member& member : members) sum += std::ranges::min(member.variants[variant].durations);
  return sum;
}

TimedStep VariedStep::with(const VariantChoice& choice) const {
  um::expects(choice.size() == groups.size(), "a variant for each group");
  TimedStep step = common;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const VariantGroup::Member& member : groups[g].members) {
      const TaskVariant& variant = member.variants[choice[g]];
      Task& task = step.graph.tasks[index(member.task)];
      apply(step.graph, variant, task);
      task.variant = groups[g].names[choice[g]];
      step.durations[index(member.task)] = variant.durations;
    }
  }
  drop_others(find_needed(step.graph, groups), step.graph);
  return step;
}

VariantChoice VariedStep::first() const {
  VariantChoice choice;
  choice.resize(groups.size());
  return choice;
}

VariantChoice VariedStep::fastest() const {
  return least(groups, [](const VariantGroup& group, std::size_t v) { return group.time(v); });
}

VariantChoice VariedStep::leanest(Bytes page) const {
  std::size_t variants = 0;  // of the group that has most
  for (const VariantGroup& group : groups) variants = std::max(variants, group.names.size());
  std::vector<std::vector<Bytes>> sets;  // [variant][task]
  for (std::uint32_t v = 0; v < variants; ++v) {
    VariantChoice choice;
    for (const VariantGroup& group : groups) {
      choice.push_back(std::min(v, static_cast<std::uint32_t>(group.names.size() - 1)));
    }
    const TimedStep step = with(choice);
    sets.push_back(
        working_sets(step.graph, BlockSizes{step.graph, page}, runs_in_order(step.graph)));
  }
  return least(groups, [&](const VariantGroup& group, std::size_t variant) {
    Bytes largest;
    for (const VariantGroup::Member& member : group.members) {
      largest = std::max(largest, sets[variant][index(member.task)]);
    }
    return std::pair{largest, group.time(variant)};
  });
}

VariantChoice VariedStep::named(
    const std::vector<std::pair<std::string, std::string>>& variants) const {
  std::unordered_map<std::string_view, std::size_t> group_of;  // by task
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const VariantGroup::Member& member : groups[g].members) {
      group_of.emplace(common.graph[member.task].name, g);
    }
  }
  VariantChoice choice = first();
  for (const auto& [task, name] : variants) {
    const auto group = group_of.find(task);
    const std::size_t number =
        group == group_of.end() ? 0 : number_of(groups[group->second].names, name);
    if (group == group_of.end() || number == groups[group->second].names.size()) {
      std::string complaint = "task '";
      complaint.append(task)
          .append("' has no variant '")
          .append(name)
          .append("'; the plan is of another trace");
      throw um::Error{complaint};
    }
    choice[group->second] = static_cast<std::uint32_t>(number);
  }
  return choice;
}

}  // namespace spillway::prefetch
