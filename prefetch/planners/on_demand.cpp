#include <algorithm>
#include <utility>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/gradient_exchange.h"
#include "prefetch/liveness.h"
#include "prefetch/moves/algorithm_choice.h"
#include "prefetch/planners/strategies.h"

namespace spillway::prefetch {
namespace {

using um::Bytes;

// Executes the runs with a near memory of whole blocks and least-recently-used eviction, and
// records the moves.
class Swapper {
 public:
  Swapper(const TaskGraph& graph, const BlockSizes& block_sizes, Bytes pool, Plan& plan)
      : graph_{graph},
        block_sizes_{block_sizes},
        pool_{pool},
        plan_{plan},
        blocks_(graph.data.size()) {
    lives_ = find_lives(graph, plan.runs);
    for (const Life& life : lives_) {
      ends_.emplace_back(life.last(), life.data);
      at(life.data).is_far_valid = life.outlives_step();  // far between steps
    }
    std::ranges::sort(ends_);
  }

  void execute() {
    for (Position position = 0; position < plan_.runs.size(); ++position) {
      execute(position);
      for (; next_end_ < ends_.size() && ends_[next_end_].first == position; ++next_end_) {
        release(ends_[next_end_].second);
      }
    }
  }

 private:
  struct Block {
    bool is_near = false;
    bool is_far_valid = false;
    Position last_use = 0;
  };
  Block& at(DataId id) { return blocks_[static_cast<std::size_t>(id)]; }

  void execute(Position position) {
    TaskRun& run = plan_.runs[position];
    const Task& task = graph_[run.task];
    std::vector<DataId> used = operands(task);
    std::erase_if(used, [&](DataId id) { return !block_sizes_.is_movable(id); });
    Bytes wanted = block_sizes_.workspace_size(task.algorithms[run.algorithm].workspace);
    for (const DataId id : used) {
      if (!at(id).is_near) wanted += block_sizes_.size(id);
    }
    while (in_use_ + wanted > pool_) evict(least_recently_used(used), position);
    for (const DataId id : used) bring(id, position, needs_content(task, id));
    for (const DataId id : task.writes) at(id).is_far_valid = false;
    run.after = {.runs = position,
                 .offloads = static_cast<std::uint32_t>(plan_.offloads.size()),
                 .prefetches = static_cast<std::uint32_t>(plan_.prefetches.size())};
  }

  [[nodiscard]] DataId least_recently_used(const std::vector<DataId>& pinned) const {
    std::size_t oldest = blocks_.size();
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      if (!blocks_[i].is_near || std::ranges::count(pinned, DataId(i)) > 0) continue;
      if (oldest == blocks_.size() || blocks_[i].last_use < blocks_[oldest].last_use) oldest = i;
    }
    return DataId(oldest);
  }

  void evict(DataId id, Position position) {
    plan_.offloads.push_back({.data = id,
                              .offset = {},
                              .size = block_sizes_.size(id),
                              .is_clean = at(id).is_far_valid,
                              .after = {.runs = position}});
    at(id).is_near = false;
    at(id).is_far_valid = true;
    in_use_ -= block_sizes_.size(id);
  }

  // State is not overwritten in far memory: it is brought near even to be overwritten.
  [[nodiscard]] bool needs_content(const Task& task, DataId id) const {
    return graph_[id].kind == DataKind::kState || std::ranges::count(task.reads, id) > 0;
  }

  void bring(DataId id, Position position, bool reads) {
    Block& block = at(id);
    if (!block.is_near) {
      in_use_ += block_sizes_.size(id);
      if (reads && block.is_far_valid) {
        plan_.prefetches.push_back(
            {.data = id,
             .offset = {},
             .size = block_sizes_.size(id),
             .after = {.runs = position,
                       .offloads = static_cast<std::uint32_t>(plan_.offloads.size())}});
      }
    }
    block.is_near = true;
    block.last_use = position;
  }

  void release(DataId id) {
    if (at(id).is_near && graph_[id].kind == DataKind::kState) {
      evict(id, static_cast<Position>(plan_.runs.size()));
    }
    if (at(id).is_near) in_use_ -= block_sizes_.size(id);
    at(id) = {};
  }

  const TaskGraph& graph_;
  const BlockSizes& block_sizes_;
  Bytes pool_;
  Plan& plan_;
  std::vector<Block> blocks_;
  std::vector<Life> lives_;
  std::vector<std::pair<Position, DataId>> ends_;
  std::size_t next_end_ = 0;
  Bytes in_use_;
};

}  // namespace

std::variant<Plan, Infeasible> plan_on_demand(const Problem& problem) {
  const BlockSizes block_sizes{problem.graph, problem.page};
  const Bytes pool = block_sizes.pool(problem.budget);
  Plan plan{.planner = {},
            .graph = fingerprint(problem.graph),
            .budget = problem.budget,
            .page = problem.page,
            .residency = problem.whole_blocks ? Residency::kPlanned : Residency::kOnDemand,
            .runs = fastest_that_fit(problem)};
  const std::vector<Bytes> sets = working_sets(problem.graph, block_sizes, plan.runs);
  const bool fits = std::ranges::all_of(sets, [&](Bytes set) { return set <= pool; });
  if (!fits || block_sizes.pinned() > problem.budget) return infeasible(problem);
  for (Position p = 0; p < plan.runs.size(); ++p) plan.runs[p].after = {.runs = p};
  add_exchanges(problem.graph, plan);
  if (problem.whole_blocks) Swapper{problem.graph, block_sizes, pool, plan}.execute();
  return plan;
}

}  // namespace spillway::prefetch
