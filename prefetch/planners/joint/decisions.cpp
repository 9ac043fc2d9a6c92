#include "prefetch/planners/joint/decisions.h"

#include <cstddef>

#include "prefetch/moves/algorithm_choice.h"

namespace spillway::prefetch {

std::vector<Dropped> dropped_blocks(std::span<const Recomputable> blocks,
                                    std::span<const RetentionPolicy> policies) {
  std::vector<Dropped> dropped;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (policies[i] == RetentionPolicy::kKeep) continue;
    const bool per_use = policies[i] == RetentionPolicy::kDropPerUse;
    dropped.push_back(
        {.data = blocks[i].data, .reuse = per_use ? Reuse::kPerUse : Reuse::kUntilLastUse});
  }
  return dropped;
}

void Decisions::apply(std::span<const Change> changes) {
  for (const Change& change : changes) {
    if (change.what == Change::What::kPolicy) {
      policies[change.index] = static_cast<RetentionPolicy>(change.value);
    } else {
      algorithms[change.index] = change.value;
    }
  }
}

DecisionSpace::DecisionSpace(const Problem& problem)
    : inserter_{problem.graph}, in_order_{fastest_that_fit(problem)} {
  if (problem.may_recompute) {
    droppable_ = find_recomputable(problem.graph, problem.profile, problem.page, in_order_);
  }
  start_.policies.assign(droppable_.size(), RetentionPolicy::kKeep);
  for (const TaskRun& run : in_order_) {
    start_.algorithms.push_back(run.algorithm);
    if (run.algorithm != 0) choosable_.push_back(run.task);
  }
}

std::vector<TaskRun> DecisionSpace::runs(const Decisions& decisions) const {
  std::vector<TaskRun> runs = in_order_;
  for (std::size_t t = 0; t < runs.size(); ++t) runs[t].algorithm = decisions.algorithms[t];
  const std::vector<Dropped> dropped = dropped_blocks(droppable_, decisions.policies);
  return dropped.empty() ? runs : inserter_.insert(runs, dropped);
}

}  // namespace spillway::prefetch
