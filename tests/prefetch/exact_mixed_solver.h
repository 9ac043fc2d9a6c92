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

/// The shortest makespan of any schedule that moves whole blocks and runs recomputable forward
/// tasks again, together at most `max_reruns` times, wherever that leaves every run its right
/// values; nothing when none fits. For graphs of a handful of tasks.
///
/// Looks at every such sequence, those that compute least first, with the best moves for each
/// (ExactSolver); those that compute longer than the best schedule so far are not worth a look. So
/// are reruns that leave no gap: nobody reads what they make, or it was used by the run before.
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

  // Goes on with the task at `next`, or with any rerun.
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

  // Whether the last run does: then there was no time in which the output was dropped.
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
  std::vector<TaskRun> runs_;  // the sequence in the making
  std::vector<Sequence> sequences_;
};

}  // namespace spillway::prefetch::testing
