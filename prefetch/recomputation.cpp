#include "prefetch/recomputation.h"

#include <algorithm>

#include "prefetch/dataflow.h"
#include "prefetch/occupancy.h"

namespace spillway::prefetch {
namespace {

bool is_forward(const Task& task) { return task.phase == Phase::kForward; }

// The forward tasks that write each block, in order.
std::vector<std::vector<TaskId>> find_writers(const TaskGraph& graph) {
  std::vector<std::vector<TaskId>> writers(graph.data.size());
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
    if (!is_forward(graph.tasks[t])) continue;
    for (const DataId id : graph.tasks[t].writes) {
      writers[static_cast<std::size_t>(id)].push_back(TaskId(t));
    }
  }
  return writers;
}

class Inserter {
 public:
  Inserter(const TaskGraph& graph, const std::vector<TaskRun>& runs,
           const std::vector<DataId>& dropped)
      : graph_{graph}, writers_{find_writers(graph)}, is_missing_(graph.data.size(), false) {
    for (const TaskRun& run : runs) algorithm_.push_back(run.algorithm);
    for (const DataId id : dropped) is_missing_[static_cast<std::size_t>(id)] = true;
  }

  std::vector<TaskRun> insert(const std::vector<TaskRun>& runs) {
    for (const TaskRun& run : runs) {
      const Task& task = graph_[run.task];
      if (!is_forward(task)) make_present(task);
      result_.push_back(run);
    }
    return std::move(result_);
  }

 private:
  void make_present(const Task& reader) {
    for (const DataId id : reader.reads) {
      if (is_missing_[static_cast<std::size_t>(id)]) recompute(id);
    }
  }

  void recompute(DataId id) {
    is_missing_[static_cast<std::size_t>(id)] = false;
    for (const TaskId writer : writers_[static_cast<std::size_t>(id)]) {
      make_present(graph_[writer]);
      result_.push_back({.task = writer,
                         .algorithm = algorithm_[static_cast<std::size_t>(writer)],
                         .is_recomputation = true});
      for (const DataId written : graph_[writer].writes) {
        is_missing_[static_cast<std::size_t>(written)] = false;
      }
    }
  }

  const TaskGraph& graph_;
  std::vector<std::vector<TaskId>> writers_;
  std::vector<bool> is_missing_;
  std::vector<std::uint32_t> algorithm_;
  std::vector<TaskRun> result_;
};

// Whether any backward task reads the block, which makes dropping it worth a thought.
std::vector<bool> find_saved(const TaskGraph& graph) {
  std::vector<bool> saved(graph.data.size(), false);
  for (const Task& task : graph.tasks) {
    if (is_forward(task)) continue;
    for (const DataId id : task.reads) saved[static_cast<std::size_t>(id)] = true;
  }
  return saved;
}

// Of `candidates`, in order, each that can be dropped together with all kept before it.
std::vector<Recomputable> keep_what_can_be_dropped_together(
    const TaskGraph& graph, const std::vector<TaskRun>& runs,
    const std::vector<Recomputable>& candidates) {
  std::vector<Recomputable> kept;
  std::vector<DataId> dropped;
  for (const Recomputable& candidate : candidates) {
    dropped.push_back(candidate.data);
    if (check_dataflow(graph, with_recomputation(graph, runs, dropped))) {
      dropped.pop_back();
    } else {
      kept.push_back(candidate);
    }
  }
  return kept;
}

}  // namespace

std::vector<Recomputable> find_recomputable(const TaskGraph& graph, const Profile& profile,
                                            um::Bytes page, const std::vector<TaskRun>& runs) {
  const Occupancy occupancy{graph, page};
  const auto writers = find_writers(graph);
  const auto saved = find_saved(graph);
  std::vector<Recomputable> result;
  for (std::size_t i = 0; i < graph.data.size(); ++i) {
    const bool all_recomputable =
        std::ranges::all_of(writers[i], [&](TaskId id) { return graph[id].is_recomputable; });
    if (!saved[i] || writers[i].empty() || !all_recomputable || !occupancy.is_movable(DataId(i))) {
      continue;
    }
    Recomputable block{.data = DataId(i), .size = occupancy.size(DataId(i))};
    for (const TaskId writer : writers[i]) {
      block.cost += profile(writer, runs[static_cast<std::size_t>(writer)].algorithm);
    }
    result.push_back(block);
  }
  const auto cost_per_byte = [](const Recomputable& block) {
    return static_cast<double>(block.cost.count()) / static_cast<double>(block.size.count());
  };
  std::ranges::stable_sort(result, {}, cost_per_byte);
  return keep_what_can_be_dropped_together(graph, runs, result);
}

std::vector<TaskRun> with_recomputation(const TaskGraph& graph, const std::vector<TaskRun>& runs,
                                        const std::vector<DataId>& dropped) {
  return Inserter{graph, runs, dropped}.insert(runs);
}

}  // namespace spillway::prefetch
