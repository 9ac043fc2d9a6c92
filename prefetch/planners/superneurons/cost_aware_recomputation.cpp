#include "prefetch/planners/superneurons/cost_aware_recomputation.h"

#include <algorithm>
#include <optional>

#include "prefetch/block_sizes.h"
#include "prefetch/liveness.h"

namespace spillway::prefetch {
namespace {

using um::Bytes;

std::size_t index(DataId id) { return static_cast<std::size_t>(id); }

bool is_cheap(TaskKind kind) {
  return kind == TaskKind::kPool || kind == TaskKind::kActivation ||
         kind == TaskKind::kNormalization || kind == TaskKind::kDropout;
}

// Returns by block whether only cheap forward tasks write it.
std::vector<bool> find_cheap_outputs(const TaskGraph& graph) {
  std::vector<bool> is_written(graph.data.size(), false);
  std::vector<bool> is_dear(graph.data.size(), false);
  for (const Task& task : graph.tasks) {
    for (const DataId id : task.writes) {
      is_written[index(id)] = true;
      if (!is_cheap(task.kind)) is_dear[index(id)] = true;
    }
  }
  std::vector<bool> result(graph.data.size());
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = is_written[i] && !is_dear[i];
  return result;
}

// Returns by block the checkpoint of its segment; the block itself if it is not dropped.
std::vector<DataId> find_checkpoints(const TaskGraph& graph, const std::vector<bool>& is_dropped) {
  std::vector<DataId> checkpoints;
  for (std::size_t i = 0; i < graph.data.size(); ++i) checkpoints.push_back(DataId(i));
  for (const Task& task : graph.tasks) {
    const auto is_input = [&](DataId id) {
      return graph[id].kind == DataKind::kTensor && std::ranges::count(task.writes, id) == 0;
    };
    const auto input = std::ranges::find_if(task.reads, is_input);
    if (input == task.reads.end()) continue;
    for (const DataId id : task.writes) {
      const bool is_first_writer = checkpoints[index(id)] == id;
      if (is_dropped[index(id)] && is_first_writer) {
        checkpoints[index(id)] = checkpoints[index(*input)];
      }
    }
  }
  return checkpoints;
}

// Tracks the live bytes of each segment through a step.
class SegmentCosts {
 public:
  SegmentCosts(const TaskGraph& graph, const BlockSizes& block_sizes,
               const std::vector<DataId>& checkpoints)
      : graph_{graph}, block_sizes_{block_sizes}, checkpoints_{checkpoints} {}

  // Returns the memory cost of each segment, by its checkpoint.
  [[nodiscard]] std::vector<Bytes> of(const std::vector<TaskRun>& runs) const {
    const std::vector<Life> lives = find_lives(graph_, runs);
    const std::vector<Bytes> sets = working_sets(graph_, block_sizes_, runs);
    std::vector<std::vector<DataId>> endings(runs.size());
    for (const Life& life : lives) endings[life.last()].push_back(life.data);
    std::vector<Bytes> live(graph_.data.size());
    std::vector<Bytes> costs(graph_.data.size());
    std::size_t next = 0;  // lives are in order of their beginning
    for (Position p = 0; p < runs.size(); ++p) {
      for (; next < lives.size() && lives[next].begin() == p; ++next) {
        live[segment(lives[next].data)] += block_sizes_.size(lives[next].data);
      }
      const Task& task = graph_[runs[p].task];
      if (task.phase != Phase::kForward || runs[p].is_recomputation) {
        charge(task, sets[p], live, costs);
      }
      for (const DataId id : endings[p]) live[segment(id)] -= block_sizes_.size(id);
    }
    return costs;
  }

 private:
  [[nodiscard]] std::size_t segment(DataId id) const { return index(checkpoints_[index(id)]); }

  // Charges each segment that the task touches with the task's working set plus the segment's other
  // live blocks.
  void charge(const Task& task, Bytes set, const std::vector<Bytes>& live,
              std::vector<Bytes>& costs) const {
    const std::vector<DataId> used = operands(task);
    for (const DataId id : used) {
      Bytes cost = set + live[segment(id)];
      for (const DataId other : used) {
        if (segment(other) == segment(id)) cost -= block_sizes_.size(other);  // counted twice
      }
      costs[segment(id)] = std::max(costs[segment(id)], cost);
    }
  }

  const TaskGraph& graph_;
  const BlockSizes& block_sizes_;
  const std::vector<DataId>& checkpoints_;
};

// The blocks that are dropped for a problem, and their cost.
class CheapLayers {
 public:
  CheapLayers(const Problem& problem, const std::vector<TaskRun>& runs)
      : graph_{problem.graph},
        block_sizes_{problem.graph, problem.page},
        runs_{runs},
        is_dropped_(problem.graph.data.size(), false) {
    const std::vector<bool> is_cheap_output = find_cheap_outputs(graph_);
    for (const Recomputable& block :
         find_recomputable(graph_, problem.profile, problem.page, runs)) {
      is_dropped_[index(block.data)] = is_cheap_output[index(block.data)];
    }
    checkpoints_ = find_checkpoints(graph_, is_dropped_);
  }

  [[nodiscard]] std::vector<Dropped> drop(RecomputationStrategy strategy) const {
    switch (strategy) {
      case RecomputationStrategy::kSpeedCentric:
        return drop([](DataId) { return Reuse::kUntilLastUse; });
      case RecomputationStrategy::kMemoryCentric:
        return drop([](DataId) { return Reuse::kOnceRead; });
      case RecomputationStrategy::kCostAware:
        break;
    }
    const std::vector<Bytes> speed = costs(drop(RecomputationStrategy::kSpeedCentric));
    const std::vector<Bytes> memory = costs(drop(RecomputationStrategy::kMemoryCentric));
    const std::vector<Bytes> layers = working_sets(graph_, block_sizes_, runs_);
    Bytes l_peak;
    for (const Bytes cost : memory) l_peak = std::max(l_peak, cost);
    for (const Bytes layer : layers) l_peak = std::max(l_peak, layer);
    return drop([&](DataId id) {
      const bool is_dear = speed[index(checkpoints_[index(id)])] > l_peak;
      return is_dear ? Reuse::kOnceRead : Reuse::kUntilLastUse;
    });
  }

 private:
  template <class ReuseOf>
  [[nodiscard]] std::vector<Dropped> drop(const ReuseOf& reuse_of) const {
    std::vector<Dropped> dropped;
    for (std::size_t i = 0; i < is_dropped_.size(); ++i) {
      if (is_dropped_[i]) dropped.push_back({.data = DataId(i), .reuse = reuse_of(DataId(i))});
    }
    return dropped;
  }

  [[nodiscard]] std::vector<Bytes> costs(const std::vector<Dropped>& dropped) const {
    const auto runs = RecomputationInserter{graph_}.insert(runs_, dropped);
    return SegmentCosts{graph_, block_sizes_, checkpoints_}.of(runs);
  }

  const TaskGraph& graph_;
  BlockSizes block_sizes_;
  const std::vector<TaskRun>& runs_;
  std::vector<bool> is_dropped_;     // by block
  std::vector<DataId> checkpoints_;  // by block
};

}  // namespace

std::vector<Dropped> drop_cheap_layers(const Problem& problem, const std::vector<TaskRun>& runs,
                                       RecomputationStrategy strategy) {
  return CheapLayers{problem, runs}.drop(strategy);
}

}  // namespace spillway::prefetch
