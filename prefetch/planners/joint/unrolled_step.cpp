#include "prefetch/planners/joint/unrolled_step.h"

#include <cstddef>
#include <string>
#include <utility>

#include "prefetch/block_sizes.h"
#include "prefetch/gradient_exchange.h"

namespace spillway::prefetch {
namespace {

constexpr std::uint32_t kEachAlgorithm = ~0U;  // algorithms

}  // namespace

UnrolledStep::UnrolledStep(const Problem& problem, std::vector<TaskRun> runs)
    : problem_{problem}, runs_{std::move(runs)} {
  graph_.data = problem.graph.data;
  graph_.far_updates = problem.graph.far_updates;
  profile_ = problem.profile;
  profile_.durations.clear();
  for (std::size_t i = 0; i < graph_.data.size(); ++i) origins_.push_back(DataId(i));
  const BlockSizes block_sizes{problem.graph, problem.page};
  std::vector<std::uint32_t> count(problem.graph.tasks.size(), 0);
  for (const TaskRun& run : runs_) ++count[static_cast<std::size_t>(run.task)];
  std::vector<TaskId> first_runs(problem.graph.tasks.size());  // as tasks of graph_
  std::vector<DataId> now = origins_;  // by block of the problem: the one that holds its content
  for (const TaskRun& run : runs_) {
    Task task = problem.graph[run.task];
    for (TaskId& id : task.after) id = first_runs[static_cast<std::size_t>(id)];
    if (!run.is_recomputation) {
      first_runs[static_cast<std::size_t>(run.task)] = TaskId(graph_.tasks.size());
    }
    for (DataId& id : task.reads) id = now[static_cast<std::size_t>(id)];
    for (DataId& id : task.writes) {
      if (run.is_recomputation && block_sizes.is_movable(id)) {
        add_block_again(id);
        now[static_cast<std::size_t>(id)] = DataId(graph_.data.size() - 1);
      }
      id = now[static_cast<std::size_t>(id)];
    }
    std::vector<um::Nanoseconds> durations =
        problem.profile.durations[static_cast<std::size_t>(run.task)];
    algorithms_.push_back(kEachAlgorithm);
    if (count[static_cast<std::size_t>(run.task)] > 1) {
      algorithms_.back() = run.algorithm;
      task.algorithms = {task.algorithms[run.algorithm]};
      durations = {durations[run.algorithm]};
    }
    if (run.is_recomputation) {
      task.updates_once.clear();
      task.name += " again " + std::to_string(graph_.tasks.size());
    }
    graph_.add(std::move(task));
    profile_.durations.push_back(std::move(durations));
  }
  add_exchanges_of(problem.graph);
  profile_.graph = fingerprint(graph_);
}

// In an order that keeps Precedence, all that makes the blocks of an exchange stands before all
// that uses them afterwards.
void UnrolledStep::add_exchanges_of(const TaskGraph& given) {
  graph_.exchanges = given.exchanges;
  const std::vector<std::uint32_t> exchange = exchange_of_blocks(given);
  for (std::uint32_t p = 0; p < runs_.size() && !given.exchanges.empty(); ++p) {
    const TaskId task = runs_[p].task;
    for_each_operand(given[task], [&](DataId id) {
      const std::uint32_t e = exchange[static_cast<std::size_t>(id)];
      if (e > 0 && task <= given.exchanges[e - 1].ready) graph_.exchanges[e - 1].ready = TaskId{p};
    });
  }
}

void UnrolledStep::add_block_again(DataId id) {
  DataBlock block = problem_.graph[id];
  block.name += " again " + std::to_string(graph_.data.size());
  graph_.add(std::move(block));
  origins_.push_back(id);
}

Problem UnrolledStep::problem() const {
  Problem own = problem_.with(graph_, profile_);
  own.may_reorder = false;
  return own;
}

Plan UnrolledStep::rolled_up(const Plan& unrolled) const {
  Plan plan = unrolled;
  plan.graph = problem_.profile.graph;
  for (TaskRun& run : plan.runs) {
    const auto index = static_cast<std::size_t>(run.task);
    run.task = runs_[index].task;
    run.is_recomputation = run.is_recomputation || runs_[index].is_recomputation;
    if (algorithms_[index] != kEachAlgorithm) run.algorithm = algorithms_[index];
  }
  for (auto* const moves : {&plan.offloads, &plan.prefetches}) {
    for (Move& move : *moves) move.data = origins_[static_cast<std::size_t>(move.data)];
  }
  return plan;
}

}  // namespace spillway::prefetch
