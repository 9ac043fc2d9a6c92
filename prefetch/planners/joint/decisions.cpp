#include "prefetch/planners/joint/decisions.h"

#include <cstddef>

#include "prefetch/block_sizes.h"
#include "prefetch/liveness.h"
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
    switch (change.what) {
      case Change::What::kPolicy:
        policies[change.index] = static_cast<RetentionPolicy>(change.value);
        break;
      case Change::What::kAlgorithm:
        algorithms[change.index] = change.value;
        break;
      case Change::What::kPreference:
        preferences[change.index] = static_cast<Preference>(change.value);
        break;
      case Change::What::kCoverOrder:
        order = static_cast<CoverOrder>(change.value);
        break;
      case Change::What::kWholeBlocks:
        whole_blocks = change.value != 0;
        break;
      case Change::What::kEager:
        move_order.is_eager = change.value != 0;
        break;
      case Change::What::kSpare:
        spare = change.value;
        break;
      case Change::What::kInParts:
        move_order.in_parts = change.value != 0;
        break;
      case Change::What::kPrefetchesFirst:
        move_order.prefetches_first = change.value != 0;
        break;
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
  const BlockSizes block_sizes{problem.graph, problem.page};
  std::vector<std::uint32_t> found(problem.graph.data.size());  // by block: intervals so far
  for (const IdleInterval& idle :
       find_idle_intervals(block_sizes, find_lives(problem.graph, in_order_))) {
    intervals_.push_back({.data = idle.data,
                          .number = found[static_cast<std::size_t>(idle.data)]++,
                          .last = idle.last,
                          .next = idle.next});
  }
  start_.preferences.assign(intervals_.size(), Preference::kInOrder);
}

MoveDecisions DecisionSpace::moves(const Decisions& decisions) const {
  MoveDecisions moves{.order = decisions.order,
                      .whole_blocks = decisions.whole_blocks,
                      .spare = decisions.spare,
                      .preferences = {},
                      .move_order = decisions.move_order};
  for (std::size_t i = 0; i < intervals_.size(); ++i) {
    if (decisions.preferences[i] == Preference::kInOrder) continue;
    moves.preferences.push_back({.data = intervals_[i].data,
                                 .interval = intervals_[i].number,
                                 .preference = decisions.preferences[i]});
  }
  return moves;
}

std::vector<TaskRun> DecisionSpace::runs(const Decisions& decisions) const {
  std::vector<TaskRun> runs = in_order_;
  for (std::size_t t = 0; t < runs.size(); ++t) runs[t].algorithm = decisions.algorithms[t];
  const std::vector<Dropped> dropped = dropped_blocks(droppable_, decisions.policies);
  return dropped.empty() ? runs : inserter_.insert(runs, dropped);
}

}  // namespace spillway::prefetch
