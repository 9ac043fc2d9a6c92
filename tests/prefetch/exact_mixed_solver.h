#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "prefetch/planner.h"
#include "prefetch/profile.h"
#include "prefetch/verify/dataflow.h"
#include "tests/prefetch/exact_solver.h"
#include "tests/prefetch/promised_contents.h"

namespace spillway::prefetch::testing {

/// Finds the shortest makespan of any schedule that moves whole blocks and recomputes forward tasks
/// at most `max_reruns` times in total, wherever every run keeps its right values; nullopt when
/// none fits. For graphs of a handful of tasks.
///
/// Searches all such sequences in order of compute time, with the best moves for each
/// (ExactSolver). Skips sequences that compute longer than the best schedule so far. Skips reruns
/// without a gap: their outputs are not read, or were used by the previous run.
class ExactMixedSolver {
 public:
  ExactMixedSolver(const Problem& problem, int max_reruns)
      : problem_{problem}, promised_{problem.graph}, max_reruns_{max_reruns} {}

  std::optional<um::Nanoseconds> solve() {
    extend(0, 0);
    std::ranges::stable_sort(sequences_, {}, &Sequence::time);
    std::optional<um::Nanoseconds> best;
    for (const Sequence& sequence : sequences_) {
      if (best && sequence.time >= *best) break;
      ExactSolver solver{problem_, sequence.runs};
      const auto makespan = best ? solver.solve(*best) : solver.solve();
      if (makespan) best = makespan;
    }
    return best;
  }

 private:
  struct Sequence {
    um::Nanoseconds time{0};
    std::vector<TaskRun> runs;
  };

  // Continues with the task at `next`, or with any rerun.
  void extend(std::size_t next, int reruns) {
    const auto& tasks = problem_.graph.tasks;
    if (next == tasks.size()) return keep();
    runs_.push_back({.task = TaskId(next)});
    extend(next + 1, reruns);
    runs_.pop_back();
    for (std::size_t t = 0; t < next && reruns < max_reruns_; ++t) {
      const bool may_rerun = tasks[t].is_recomputable && tasks[t].phase == Phase::kForward;
      if (!may_rerun || uses_what_it_makes(TaskId(t))) continue;
      runs_.push_back({.task = TaskId(t), .is_recomputation = true});
      extend(next, reruns + 1);
      runs_.pop_back();
    }
  }

  // True if the last run uses the outputs, which leaves no time in which they were dropped.
  [[nodiscard]] bool uses_what_it_makes(TaskId task) const {
    const TaskId last = runs_.back().task;
    const std::vector<DataId>& reads = problem_.graph[last].reads;
    return std::ranges::all_of(problem_.graph[task].writes, [&](DataId id) {
      const auto read = std::ranges::find(reads, id) - reads.begin();
      if (read == std::ssize(reads)) return last == task;
      return promised_[last].reads[static_cast<std::size_t>(read)] ==
             PromisedContents::written_by(task);
    });
  }

  void keep() {
    const auto dying = dying_operands(problem_.graph, runs_);
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      if (!runs_[i].is_recomputation) continue;
      const bool is_wasted =
          std::ranges::all_of(problem_.graph[runs_[i].task].writes,
                              [&](DataId id) { return std::ranges::count(dying[i], id) > 0; });
      if (is_wasted) return;
    }
    if (check_dataflow(problem_.graph, runs_)) return;
    sequences_.push_back({.time = compute_time(problem_.profile, runs_), .runs = runs_});
  }

  const Problem& problem_;
  PromisedContents promised_;
  int max_reruns_;
  std::vector<TaskRun> runs_;  // the sequence being built
  std::vector<Sequence> sequences_;
};

}  // namespace spillway::prefetch::testing
