#include "src/program/micro_batches.h"

#include <algorithm>
#include <unordered_map>

#include "src/program/combinations.h"

namespace spillway {

using prefetch::Task;
using prefetch::TaskGraph;
using prefetch::TaskId;

std::size_t MicroBatches::own_samples() const {
  return std::min(batch, own.end * size) - samples_before();
}

MicroBatches all_of(std::size_t samples, const prefetch::BatchCut& cut) {
  const SumTree tree{cut.count};
  return {.batch = samples, .size = cut.size, .tree = tree, .own = tree.root()};
}

MicroBatches part_of_rank(MicroBatches all, std::size_t rank, std::size_t ranks) {
  expect_work_for(ranks, all);
  all.own = micro_batches_of_rank(all.count(), ranks, rank);
  return all;
}

std::string_view name_in_first(std::string_view name) {
  const std::size_t end = name.find_last_not_of("0123456789");
  const bool is_numbered = end != std::string_view::npos && end + 1 < name.size();
  return is_numbered && name[end] == kMicroBatchMark ? name.substr(0, end) : name;
}

std::vector<TaskId> first_alike(const TaskGraph& graph) {
  std::unordered_map<std::string_view, std::vector<TaskId>> by_stem;
  const auto are_alike = [](const Task& a, const Task& b) {
    return a.flops == b.flops && a.traffic == b.traffic &&
           std::ranges::equal(a.algorithms, b.algorithms,
                              [](const prefetch::Algorithm& own, const prefetch::Algorithm& other) {
                                return own.name == other.name && own.workspace == other.workspace;
                              });
  };
  std::vector<TaskId> first;
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
    const Task& task = graph.tasks[t];
    std::vector<TaskId>& known = by_stem[name_in_first(task.name)];
    const auto found =
        std::ranges::find_if(known, [&](TaskId id) { return are_alike(graph[id], task); });
    if (found == known.end()) {
      known.push_back(TaskId(t));
      first.push_back(TaskId(t));
    } else {
      first.push_back(*found);
    }
  }
  return first;
}

bool normalizes_by_batch(const TaskGraph& training) {
  return std::ranges::any_of(training.tasks,
                             [](const Task& task) { return !task.updates_once.empty(); });
}

}  // namespace spillway
