#include "prefetch/moves/recomputation.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "prefetch/block_sizes.h"
#include "prefetch/liveness.h"
#include "prefetch/moves/algorithm_choice.h"
#include "prefetch/moves/offload_plan.h"

namespace spillway::prefetch {
namespace {

using um::Bytes;

bool is_forward(const Task& task) { return task.phase == Phase::kForward; }

// Returns the forward tasks that write each block, in order.
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

// Returns by task the algorithm of its first run.
std::vector<std::uint32_t> algorithms_of(const TaskGraph& graph, const std::vector<TaskRun>& runs) {
  std::vector<std::uint32_t> algorithms(graph.tasks.size());
  for (const TaskRun& run : runs) {
    if (!run.is_recomputation) algorithms[static_cast<std::size_t>(run.task)] = run.algorithm;
  }
  return algorithms;
}

// Builds one sequence.
class Insertion {
 public:
  Insertion(const TaskGraph& graph, const std::vector<std::vector<TaskId>>& writers,
            const std::vector<TaskRun>& runs, std::span<const Dropped> dropped)
      : graph_{graph},
        writers_{writers},
        runs_{runs},
        algorithms_{algorithms_of(graph, runs)},
        is_missing_(graph.data.size(), false),
        reuse_(graph.data.size(), Reuse::kUntilLastUse) {
    for (const Dropped& block : dropped) {
      is_missing_[index(block.data)] = true;
      reuse_[index(block.data)] = block.reuse;
    }
  }

  // Returns nullopt when there are more than `max` runs.
  std::optional<std::vector<TaskRun>> insert(std::size_t max) {
    result_.reserve(std::min(max, 2 * runs_.size()));
    for (const TaskRun& run : runs_) {
      const Task& task = graph_[run.task];
      if (!is_forward(task)) make_present(task);
      if (result_.size() >= max) return std::nullopt;
      result_.push_back(run);
      give_back(task);
    }
    return std::move(result_);
  }

 private:
  static std::size_t index(DataId id) { return static_cast<std::size_t>(id); }

  // A block being recomputed: its next writer, and the next input of that writer.
  struct Making {
    DataId data;
    std::size_t writer = 0;
    std::size_t read = 0;
  };

  // Recomputes the missing inputs of `reader`, each block after its own inputs. Uses an explicit
  // stack, since the chain of inputs may have any length.
  void make_present(const Task& reader) {
    for (const DataId id : reader.reads) {
      if (!is_missing_[index(id)]) continue;
      begin_making(id);
      while (!making_.empty()) go_on_making();
    }
  }

  void begin_making(DataId id) {
    is_missing_[index(id)] = false;
    if (is_lent(id)) borrowed_.push_back(id);
    making_.push_back({.data = id});
  }

  // Pushes the next missing input of the last block, or runs the block's next writer.
  void go_on_making() {
    Making& last = making_.back();
    const std::vector<TaskId>& writers = writers_[index(last.data)];
    if (last.writer == writers.size()) {
      making_.pop_back();
      return;
    }
    const TaskId writer = writers[last.writer];
    const Task& task = graph_[writer];
    while (last.read < task.reads.size()) {
      const DataId read = task.reads[last.read++];
      if (is_missing_[index(read)]) return begin_making(read);
    }
    result_.push_back({.task = writer,
                       .algorithm = algorithms_[static_cast<std::size_t>(writer)],
                       .is_recomputation = true});
    for (const DataId written : task.writes) be_present(written);
    ++last.writer;
    last.read = 0;
  }

  // Drops the borrowed blocks that were recomputed for `reader`.
  void give_back(const Task& reader) {
    for (const DataId id : borrowed_) {
      const bool intervals = reuse_[index(id)] == Reuse::kOnceRead && reads(reader, id);
      is_missing_[index(id)] = !intervals;
    }
    borrowed_.clear();
  }

  static bool reads(const Task& task, DataId id) { return std::ranges::count(task.reads, id) > 0; }
  [[nodiscard]] bool is_lent(DataId id) const { return reuse_[index(id)] != Reuse::kUntilLastUse; }

  // The rerun of a task makes all its outputs.
  void be_present(DataId id) {
    if (is_missing_[index(id)] && is_lent(id)) borrowed_.push_back(id);
    is_missing_[index(id)] = false;
  }

  const TaskGraph& graph_;
  const std::vector<std::vector<TaskId>>& writers_;
  const std::vector<TaskRun>& runs_;
  std::vector<std::uint32_t> algorithms_;  // by task
  std::vector<bool> is_missing_;           // by block
  std::vector<Reuse> reuse_;               // by block
  std::vector<DataId> borrowed_;           // recomputed for the current run
  std::vector<Making> making_;             // a stack: each is an input of the one before
  std::vector<TaskRun> result_;
};

// Returns by block whether the backward pass may read it, which makes it a candidate for dropping:
// a backward task reads it, or the rerun of a task that makes such a block.
std::vector<bool> find_saved(const TaskGraph& graph) {
  std::vector<bool> saved(graph.data.size(), false);
  const auto is_saved = [&](DataId id) -> bool { return saved[static_cast<std::size_t>(id)]; };
  for (std::size_t t = graph.tasks.size(); t-- > 0;) {
    const Task& task = graph.tasks[t];
    const bool may_rerun = task.is_recomputable && std::ranges::any_of(task.writes, is_saved);
    if (is_forward(task) && !may_rerun) continue;
    for (const DataId id : task.reads) saved[static_cast<std::size_t>(id)] = true;
  }
  return saved;
}

// The first and the last backward task that requires a recomputation.
struct Reruns {
  std::size_t first = std::numeric_limits<std::size_t>::max();
  std::size_t last = 0;

  void add(const Reruns& others) {
    first = std::min(first, others.first);
    last = std::max(last, others.last);
  }
};

// Finds the tasks that can safely run again, whatever else is dropped.
class Rerun {
 public:
  Rerun(const TaskGraph& graph, const std::vector<std::vector<TaskId>>& writers)
      : graph_{graph},
        writers_{writers},
        writes_(graph.data.size()),
        overwritten_(graph.data.size(), std::numeric_limits<std::size_t>::max()),
        reads_(graph.data.size()),
        readers_(graph.data.size()) {
    for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
      const Task& task = graph.tasks[t];
      for (const DataId id : task.writes) {
        writes_[index(id)].push_back(t);
        if (!is_forward(task)) overwritten_[index(id)] = std::min(overwritten_[index(id)], t);
      }
      for (const DataId id : task.reads) {
        if (is_forward(task)) {
          readers_[index(id)].push_back(TaskId(t));
        } else {
          reads_[index(id)].add({.first = t, .last = t});
        }
      }
    }
  }

  // Returns by block the backward tasks that may require its recomputation, because they read the
  // block or one that is made from it; nullopt if its tasks must not run again.
  [[nodiscard]] std::vector<std::optional<Reruns>> find() const {
    std::vector<std::optional<Reruns>> found(graph_.data.size());
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < graph_.data.size(); ++i) {
      if (!writers_[i].empty()) order.push_back(i);
    }
    // Reverse order of production: users of a block come before it.
    std::ranges::stable_sort(order, std::ranges::greater{},
                             [&](std::size_t i) { return writers_[i].back(); });
    for (const std::size_t i : order) {
      Reruns reruns = reads_[i];
      for (const TaskId reader : readers_[i]) {
        for (const DataId made : graph_[reader].writes) {
          if (index(made) != i && found[index(made)]) reruns.add(*found[index(made)]);
        }
      }
      if (is_harmless(DataId(i), reruns)) found[i] = reruns;
    }
    return found;
  }

 private:
  static std::size_t index(DataId id) { return static_cast<std::size_t>(id); }
  static std::size_t index(TaskId id) { return static_cast<std::size_t>(id); }

  // Returns true when the tasks that write `data` can run again before each of `reruns`: they have
  // run, no other task has overwritten the block since, they make nothing that another task
  // finishes, and their inputs still hold the same values.
  [[nodiscard]] bool is_harmless(DataId data, const Reruns& reruns) const {
    if (graph_[data].kind == DataKind::kState) return false;
    const std::vector<TaskId>& tasks = writers_[index(data)];
    if (reruns.first < index(tasks.back()) || reruns.last > overwritten_[index(data)]) return false;
    return std::ranges::all_of(tasks, [&](TaskId id) {
      return graph_[id].is_recomputable && finishes_its_outputs(id, tasks, reruns) &&
             finds_its_inputs(id, data, reruns.last);
    });
  }
  // A second update of state would be wrong.
  [[nodiscard]] bool finishes_its_outputs(TaskId id, const std::vector<TaskId>& tasks,
                                          const Reruns& reruns) const {
    return std::ranges::all_of(graph_[id].writes, [&](DataId written) {
      return graph_[written].kind != DataKind::kState &&
             std::ranges::includes(tasks, writers_[index(written)]) &&
             reruns.last <= overwritten_[index(written)];
    });
  }
  // Tensors must never be written again. State may be, but only after the rerun: it is updated
  // after its layer's backward pass.
  [[nodiscard]] bool finds_its_inputs(TaskId id, DataId data, std::size_t latest) const {
    return std::ranges::all_of(graph_[id].reads, [&](DataId read) {
      const std::vector<std::size_t>& writes = writes_[index(read)];
      const auto next = std::ranges::upper_bound(writes, index(id));
      if (read == data || next == writes.end()) return true;
      return graph_[read].kind == DataKind::kState && *next >= latest;
    });
  }

  const TaskGraph& graph_;
  const std::vector<std::vector<TaskId>>& writers_;
  std::vector<std::vector<std::size_t>> writes_;  // by block: the tasks that write it
  std::vector<std::size_t> overwritten_;          // by block: its first writer in another phase
  std::vector<Reruns> reads_;                     // by block: its backward readers
  std::vector<std::vector<TaskId>> readers_;      // by block: its forward readers
};

// Returns the bytes left at each task without its workspace, at its run with the least left.
std::vector<Bytes> find_room(const Problem& problem, const BlockSizes& block_sizes,
                             const std::vector<TaskRun>& runs) {
  const Bytes pool = block_sizes.pool(problem.budget);
  const std::vector<Bytes> live =
      demand(problem.graph, block_sizes, runs, find_lives(problem.graph, runs));
  std::vector<Bytes> room(problem.graph.tasks.size(), pool);
  for (Position p = 0; p < runs.size(); ++p) {
    const Task& task = problem.graph[runs[p].task];
    const Bytes workspace =
        block_sizes.workspace_size(task.algorithms[runs[p].algorithm].workspace);
    Bytes& min = room[static_cast<std::size_t>(runs[p].task)];
    min = std::min(min, um::saturating_difference(pool + workspace, live[p]));
  }
  return room;
}

}  // namespace

std::vector<Recomputable> find_recomputable(const TaskGraph& graph, const Profile& profile,
                                            um::Bytes page, const std::vector<TaskRun>& runs) {
  const BlockSizes block_sizes{graph, page};
  const auto writers = find_writers(graph);
  const auto saved = find_saved(graph);
  const auto reruns = Rerun{graph, writers}.find();
  const std::vector<std::uint32_t> algorithms = algorithms_of(graph, runs);
  std::vector<Recomputable> result;
  for (std::size_t i = 0; i < graph.data.size(); ++i) {
    if (!saved[i] || !reruns[i] || !block_sizes.is_movable(DataId(i))) continue;
    Recomputable block{.data = DataId(i), .size = block_sizes.size(DataId(i))};
    for (const TaskId writer : writers[i]) {
      block.cost += profile(writer, algorithms[static_cast<std::size_t>(writer)]);
    }
    result.push_back(block);
  }
  const auto cost_per_byte = [](const Recomputable& block) {
    return static_cast<double>(block.cost.count()) / static_cast<double>(block.size.count());
  };
  std::ranges::stable_sort(result, {}, cost_per_byte);
  return result;
}

RecomputationInserter::RecomputationInserter(const TaskGraph& graph)
    : graph_{graph}, writers_{find_writers(graph)} {}

std::vector<TaskRun> RecomputationInserter::insert(const std::vector<TaskRun>& runs,
                                                   std::span<const Dropped> dropped) const {
  return *insert_within(std::numeric_limits<std::size_t>::max(), runs, dropped);
}

std::optional<std::vector<TaskRun>> RecomputationInserter::insert_within(
    std::size_t max, const std::vector<TaskRun>& runs, std::span<const Dropped> dropped) const {
  return Insertion{graph_, writers_, runs, dropped}.insert(max);
}

Infeasible need_of(const Problem& problem, const std::vector<TaskRun>& runs) {
  const BlockSizes block_sizes{problem.graph, problem.page};
  const std::vector<Bytes> live =
      demand(problem.graph, block_sizes, runs, find_lives(problem.graph, runs));
  return need_max(block_sizes, runs, live);
}

Plan plan_without_moves(const Problem& problem, std::vector<TaskRun> runs) {
  const BlockSizes block_sizes{problem.graph, problem.page};
  const std::vector<Bytes> room = find_room(problem, block_sizes, runs);
  for (Position p = 0; p < runs.size(); ++p) {
    TaskRun& run = runs[p];
    const Bytes min = room[static_cast<std::size_t>(run.task)];
    run.algorithm = fastest_within(problem, block_sizes, run.task, min);
    run.after = {.runs = p};
  }
  return empty_plan(problem, std::move(runs));
}

}  // namespace spillway::prefetch
