#pragma once

#include <rapidcheck.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "prefetch/plan.h"
#include "prefetch/task_graph.h"
#include "tests/prefetch/promised_contents.h"

namespace spillway::prefetch::testing {

/// Random sequences of runs with recomputations, generated without the planners' code. After some
/// runs of the backward pass contents are forgotten. Before each run, tasks run again to make its
/// missing promised inputs, recursively. A task may thus recreate an older content of a block, and
/// the tasks that updated it in place run again afterwards.
class RandomReruns {
 public:
  explicit RandomReruns(const TaskGraph& graph)
      : graph_{graph}, promised_{graph}, held_(graph.data.size(), kNothing) {}

  /// Returns nullopt if forgotten contents cannot be recreated, or only with too many runs.
  std::optional<std::vector<TaskRun>> draw() {
    const int forgets_one_in = *rc::gen::inRange(2, 12);
    for (std::size_t i = 0; i < graph_.data.size(); ++i) {
      held_[i] = graph_.data[i].kind == DataKind::kState ? kInitial : kNothing;
    }
    for (std::size_t t = 0; t < graph_.tasks.size(); ++t) {
      const Task& task = graph_.tasks[t];
      if (task.phase != Phase::kForward) forget(forgets_one_in);
      if (!provide(TaskId(t), 0)) return std::nullopt;
      run(TaskId(t), false);
    }
    for (std::size_t i = 0; i < graph_.data.size(); ++i) {
      const bool is_state = graph_.data[i].kind == DataKind::kState;
      if (is_state && held_[i] != promised_.final(DataId(i))) return std::nullopt;
    }
    return std::move(runs_);
  }

 private:
  static constexpr std::size_t kMaxRuns = 200;
  static constexpr int kDeepest = 20;

  void forget(int one_in) {
    for (std::size_t i = 0; i < graph_.data.size(); ++i) {
      if (held_[i] <= kInitial || graph_.data[i].kind == DataKind::kState) continue;
      const Task& writer = graph_[PromisedContents::writer_of(held_[i])];
      if (writer.is_recomputable && *rc::gen::inRange(0, one_in) == 0) held_[i] = kNothing;
    }
  }

  // Makes all promised inputs of `task`; returns false if that is impossible.
  bool provide(TaskId task, int depth) {
    const std::vector<DataId>& reads = graph_[task].reads;
    const std::vector<Content>& wanted = promised_[task].reads;
    for (std::size_t i = 0; i < reads.size(); ++i) {
      if (held(reads[i]) != wanted[i] && !make(wanted[i], depth)) return false;
    }
    for (std::size_t i = 0; i < reads.size(); ++i) {
      if (held(reads[i]) != wanted[i]) return false;  // making one destroyed another
    }
    return true;
  }

  bool make(Content content, int depth) {
    if (content <= kInitial || depth > kDeepest || runs_.size() > kMaxRuns) return false;
    const TaskId writer = PromisedContents::writer_of(content);
    const bool has_run = std::ranges::count(runs_, writer, &TaskRun::task) > 0;
    if (!has_run || !graph_[writer].is_recomputable || !provide(writer, depth + 1)) return false;
    run(writer, true);
    return true;
  }

  void run(TaskId task, bool is_recomputation) {
    runs_.push_back({.task = task, .is_recomputation = is_recomputation});
    for (const DataId id : graph_[task].writes) {
      held_[static_cast<std::size_t>(id)] = PromisedContents::written_by(task);
    }
  }

  [[nodiscard]] Content held(DataId id) const { return held_[static_cast<std::size_t>(id)]; }

  const TaskGraph& graph_;
  PromisedContents promised_;
  std::vector<Content> held_;  // by block
  std::vector<TaskRun> runs_;
};

}  // namespace spillway::prefetch::testing
