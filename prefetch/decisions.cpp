#include "prefetch/decisions.h"

#include <cstddef>

#include "prefetch/algorithm_choice.h"

namespace spillway::prefetch {

std::vector<Dropped> dropped_blocks(std::span<const Recomputable> blocks,
                                    std::span<const Fate> fates) {
  std::vector<Dropped> dropped;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (fates[i] == Fate::kKeep) continue;
    const bool per_use = fates[i] == Fate::kDropPerUse;
    dropped.push_back(
        {.data = blocks[i].data, .reuse = per_use ? Reuse::kPerUse : Reuse::kUntilLastUse});
  }
  return dropped;
}

void Decisions::apply(std::span<const Change> changes) {
  for (const Change& change : changes) {
    if (change.what == Change::What::kFate) {
      fates[change.index] = static_cast<Fate>(change.value);
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
  start_.fates.assign(droppable_.size(), Fate::kKeep);
  for (const TaskRun& run : in_order_) {
    start_.algorithms.push_back(run.algorithm);
    if (run.algorithm != 0) choosable_.push_back(run.task);
  }
}

std::vector<TaskRun> DecisionSpace::runs(const Decisions& decisions) const {
  std::vector<TaskRun> runs = in_order_;
  for (std::size_t t = 0; t < runs.size(); ++t) runs[t].algorithm = decisions.algorithms[t];
  const std::vector<Dropped> dropped = dropped_blocks(droppable_, decisions.fates);
  return dropped.empty() ? runs : inserter_.insert(runs, dropped);
}

}  // namespace spillway::prefetch
