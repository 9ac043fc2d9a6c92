#include "prefetch/verify/dataflow.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "prefetch/precedence.h"

namespace spillway::prefetch {
namespace {

// The content of a block: a unique number for each state block at the start of the step, and for
// each write of each task.
using Version = std::uint32_t;
constexpr Version kNothing = 0;
constexpr Version kOverwritten = std::numeric_limits<Version>::max();  // by a block in its memory

// By block: other blocks in the same memory, which lose their content when it is written.
using Overlaps = std::vector<std::vector<DataId>>;

// The reads and writes of every task once, in order.
struct Reference {
  std::vector<Version> initial;               // by block
  std::vector<Version> final;                 // by block
  std::vector<std::vector<Version>> reads;    // by task, as in Task::reads
  std::vector<std::vector<Version>> updates;  // by task, as Task::updates_once: before it
  std::vector<Version> first_written;         // by task: its writes have consecutive versions
  Overlaps overlaps;
};

Overlaps find_overlaps(const TaskGraph& graph, um::Bytes page) {
  const BlockSizes block_sizes{graph, page};
  Overlaps lie_in(graph.data.size());  // by block: those that lie in it
  for (std::size_t i = 0; i < graph.data.size(); ++i) {
    const std::optional<DataId> host = block_sizes.host_of(graph, DataId(i));
    if (host) lie_in[static_cast<std::size_t>(*host)].push_back(DataId(i));
  }
  Overlaps overlaps = lie_in;
  for (std::size_t i = 0; i < graph.data.size(); ++i) {
    const std::optional<DataId> host = block_sizes.host_of(graph, DataId(i));
    if (!host) continue;
    overlaps[i].push_back(*host);
    for (const DataId id : lie_in[static_cast<std::size_t>(*host)]) {
      if (id != DataId(i)) overlaps[i].push_back(id);
    }
  }
  return overlaps;
}

std::vector<Version> versions_of(const std::vector<DataId>& ids, const std::vector<Version>& held) {
  std::vector<Version> versions;
  versions.reserve(ids.size());
  for (const DataId id : ids) versions.push_back(held[static_cast<std::size_t>(id)]);
  return versions;
}

// Gives the writes of `task` consecutive versions from `next` on; returns the next free version.
Version write(const Task& task, bool is_recomputation, Version next, const Overlaps& overlaps,
              std::vector<Version>& held) {
  const auto write_one = [&](DataId written) {
    held[static_cast<std::size_t>(written)] = next++;
    for (const DataId id : overlaps[static_cast<std::size_t>(written)]) {
      held[static_cast<std::size_t>(id)] = kOverwritten;
    }
  };
  std::ranges::for_each(task.writes, write_one);
  if (!is_recomputation) std::ranges::for_each(task.updates_once, write_one);
  return next;
}

Reference number_in_order(const TaskGraph& graph, um::Bytes page) {
  Version next = kNothing + 1;
  Reference reference;
  reference.overlaps = find_overlaps(graph, page);
  for (const DataBlock& block : graph.data) {
    reference.initial.push_back(block.kind == DataKind::kState ? next++ : kNothing);
  }
  std::vector<Version> held = reference.initial;
  for (const Task& task : graph.tasks) {
    reference.reads.push_back(versions_of(task.reads, held));
    reference.updates.push_back(versions_of(task.updates_once, held));
    reference.first_written.push_back(next);
    next = write(task, false, next, reference.overlaps, held);
  }
  reference.final = std::move(held);
  return reference;
}

// Replays the sequence of runs. While every run reads the versions of the reference, it writes
// those of the reference, so a version always identifies one content.
class RunReplayer {
 public:
  RunReplayer(const TaskGraph& graph, const Reference& reference)
      : graph_{graph},
        reference_{reference},
        held_{reference.initial},
        is_rewritten_(reference.initial.size(), false) {}

  std::optional<Violation> run(const TaskRun& run) {
    const auto index = static_cast<std::size_t>(run.task);
    const Task& task = graph_.tasks[index];
    if (auto violation = compare(run, task.reads, reference_.reads[index])) return violation;
    if (!run.is_recomputation) {
      if (auto violation = compare(run, task.updates_once, reference_.updates[index])) {
        return violation;
      }
    }
    write(task, run.is_recomputation, reference_.first_written[index], reference_.overlaps, held_);
    for (const DataId id : task.writes) {
      is_rewritten_[static_cast<std::size_t>(id)] = run.is_recomputation;
    }
    return std::nullopt;
  }

  // Checks that state, which outlives the step, has its final versions.
  [[nodiscard]] std::optional<Violation> finish() const {
    for (std::size_t i = 0; i < held_.size(); ++i) {
      if (graph_.data[i].kind == DataKind::kState && held_[i] != reference_.final[i]) {
        return Violation{graph_.data[i].name + " ends the step with an older value"};
      }
    }
    return std::nullopt;
  }

 private:
  [[nodiscard]] std::optional<Violation> compare(const TaskRun& run, const std::vector<DataId>& ids,
                                                 const std::vector<Version>& wanted) const {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const Version found = held_[static_cast<std::size_t>(ids[i])];
      if (found != wanted[i] || found == kNothing || found == kOverwritten) {
        return wrong_read(run, ids[i], found);
      }
    }
    return std::nullopt;
  }

  [[nodiscard]] Violation wrong_read(const TaskRun& run, DataId id, Version found) const {
    const std::string& name = graph_[run.task].name;
    const std::string& block = graph_[id].name;
    if (found == kNothing) {
      return {name + " reads " + block + " before anything wrote it"};
    }
    if (found == kOverwritten) {
      return {name + " reads " + block + ", over which what lies in its memory was written"};
    }
    if (run.is_recomputation) {
      return {"the recomputation of " + name + " reads other values than its first run"};
    }
    if (is_rewritten_[static_cast<std::size_t>(id)]) {
      return {name + " reads " + block + " after a recomputation gave it an older value"};
    }
    return {name + " reads " + block + " when it does not hold what the graph's order gives it"};
  }

  const TaskGraph& graph_;
  const Reference& reference_;
  std::vector<Version> held_;       // by block
  std::vector<bool> is_rewritten_;  // by block: its last writer was a recomputation
};

// Checks that each task has one first run, no recomputation before it and the tasks of Task::after
// ahead of it, and that the batch is loaded first.
std::optional<Violation> check_first_runs(const TaskGraph& graph, std::span<const TaskRun> runs) {
  std::vector<bool> has_run(graph.tasks.size(), false);
  const std::size_t loads = count_loads(graph);
  for (std::size_t position = 0; position < runs.size(); ++position) {
    const TaskRun& run = runs[position];
    const auto task = static_cast<std::size_t>(run.task);
    if (task >= graph.tasks.size())
      return Violation{"a run names task " + std::to_string(task) + ", which is not there"};
    const std::string& name = graph.tasks[task].name;
    if (run.algorithm >= graph.tasks[task].algorithms.size()) {
      return Violation{name + " has no algorithm " + std::to_string(run.algorithm)};
    }
    if (position < loads && task != position) {
      return Violation{name + " runs before the batch is loaded"};
    }
    for (const TaskId before : graph.tasks[task].after) {
      if (has_run[static_cast<std::size_t>(before)]) continue;
      return Violation{name + " runs before " + graph[before].name + ", which it must follow"};
    }
    if (run.is_recomputation) {
      if (!has_run[task]) return Violation{name + " is recomputed before its first run"};
      if (!graph.tasks[task].is_recomputable) return Violation{name + " cannot be recomputed"};
    } else if (has_run[task]) {
      return Violation{name + " runs twice without being a recomputation"};
    }
    has_run[task] = true;
  }
  const auto missing = std::ranges::find(has_run, false);
  if (missing == has_run.end()) return std::nullopt;
  return Violation{graph.tasks[static_cast<std::size_t>(missing - has_run.begin())].name +
                   " never runs"};
}

// A recomputation must use the algorithm of the first run: another one rounds differently.
std::optional<Violation> check_algorithms(const TaskGraph& graph, std::span<const TaskRun> runs) {
  std::vector<std::uint32_t> algorithm(graph.tasks.size());
  for (const TaskRun& run : runs) {
    std::uint32_t& first = algorithm[static_cast<std::size_t>(run.task)];
    if (!run.is_recomputation) first = run.algorithm;
    if (run.algorithm != first) {
      return Violation{"the recomputation of " + graph[run.task].name + " uses another algorithm"};
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Violation> check_dataflow(const TaskGraph& graph, std::span<const TaskRun> runs,
                                        um::Bytes page) {
  if (auto violation = check_first_runs(graph, runs)) return violation;
  if (auto violation = check_algorithms(graph, runs)) return violation;
  const Reference reference = number_in_order(graph, page);
  RunReplayer replayer{graph, reference};
  for (const TaskRun& run : runs) {
    if (auto violation = replayer.run(run)) return violation;
  }
  return replayer.finish();
}

}  // namespace spillway::prefetch
