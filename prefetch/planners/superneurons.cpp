#include "prefetch/planners/superneurons.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/liveness.h"
#include "prefetch/moves/algorithm_choice.h"
#include "prefetch/moves/offload_plan.h"
#include "um/error.h"

namespace spillway::prefetch {
namespace {

using um::Bytes;

std::size_t index(DataId id) { return static_cast<std::size_t>(id); }

// Returns by block whether only cheap forward tasks write it.
std::vector<bool> find_cheap_outputs(const TaskGraph& graph) {
  std::vector<bool> is_written(graph.data.size(), false);
  std::vector<bool> is_dear(graph.data.size(), false);
  for (const Task& task : graph.tasks) {
    const bool is_cheap = task.kind == TaskKind::kPool || task.kind == TaskKind::kActivation ||
                          task.kind == TaskKind::kNormalization || task.kind == TaskKind::kDropout;
    for (const DataId id : task.writes) {
      is_written[index(id)] = true;
      if (!is_cheap) is_dear[index(id)] = true;
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

bool touches(const std::vector<DataId>& ids, const std::vector<bool>& marked) {
  return std::ranges::any_of(ids, [&](DataId id) -> bool { return marked[index(id)]; });
}

// Returns by task whether it is a backward task of a convolution. Such a task reads the weights, or
// makes the gradient that their update reads.
std::vector<bool> find_convolutions_backward(const TaskGraph& graph) {
  std::vector<bool> is_weights(graph.data.size(), false);
  for (const Task& task : graph.tasks) {
    if (task.kind != TaskKind::kConvolution) continue;
    for (const DataId id : task.reads) is_weights[index(id)] = graph[id].kind == DataKind::kState;
  }
  std::vector<bool> is_gradient(graph.data.size(), false);
  for (const Task& task : graph.tasks) {
    if (task.phase != Phase::kUpdate || !touches(task.reads, is_weights)) continue;
    for (const DataId id : task.reads) is_gradient[index(id)] = graph[id].kind == DataKind::kTensor;
  }
  std::vector<bool> result;
  for (const Task& task : graph.tasks) {
    result.push_back(task.phase == Phase::kBackward &&
                     (touches(task.reads, is_weights) || touches(task.writes, is_gradient)));
  }
  return result;
}

struct Switch {
  std::string_view name;
  bool SuperNeuronsOptions::*part;
};

constexpr std::array<Switch, 4> kSwitches{{{"no-offload", &SuperNeuronsOptions::offload},
                                           {"no-cache", &SuperNeuronsOptions::tensor_cache},
                                           {"no-recompute", &SuperNeuronsOptions::recompute},
                                           {"no-workspace", &SuperNeuronsOptions::workspace}}};

const Switch& find_switch(std::string_view name) {
  std::string names;
  for (const Switch& each : kSwitches) {
    if (each.name == name) return each;
    names += (names.empty() ? "" : ", ") + std::string{each.name};
  }
  throw um::Error{"planner superneurons has no switch '" + std::string{name} + "'; it has " +
                  names};
}

// Gives each task its fastest algorithm that fits beside the near blocks at its runs. `near`
// includes the first algorithms' workspaces.
void choose_algorithms_beside(const std::vector<Bytes>& near, const Problem& problem,
                              const BlockSizes& block_sizes, std::vector<TaskRun>& runs) {
  const TaskGraph& graph = problem.graph;
  const Bytes pool = block_sizes.pool(problem.budget);
  std::vector<Bytes> room(graph.tasks.size(), pool);  // by task, at its fullest run
  for (Position p = 0; p < runs.size(); ++p) {
    Bytes& min = room[static_cast<std::size_t>(runs[p].task)];
    min = std::min(min, pool - near[p]);
  }
  for (TaskRun& run : runs) {
    const Bytes first = block_sizes.workspace_size(graph[run.task].algorithms[0].workspace);
    const Bytes free = room[static_cast<std::size_t>(run.task)] + first;
    run.algorithm = fastest_within(problem, block_sizes, run.task, free);
  }
}

}  // namespace

std::vector<Dropped> drop_cheap_layers(const Problem& problem, const std::vector<TaskRun>& runs,
                                       RecomputationStrategy strategy) {
  return CheapLayers{problem, runs}.drop(strategy);
}

TensorPool::TensorPool(const TaskGraph& graph, const BlockSizes& block_sizes,
                       const std::vector<TaskRun>& runs, bool may_offload)
    : block_sizes_{block_sizes} {
  std::vector<bool> is_output(graph.data.size(), false);  // of a convolution
  for (const Task& task : graph.tasks) {
    if (task.kind != TaskKind::kConvolution) continue;
    for (const DataId id : task.writes) is_output[index(id)] = true;
  }
  const std::vector<bool> is_backward = find_convolutions_backward(graph);
  const std::vector<Life> lives = find_lives(graph, runs);
  demand_ = prefetch::demand(graph, block_sizes, runs, lives);
  std::ranges::copy_if(lives, std::back_inserter(tensors_), [&](const Life& life) {
    return may_offload && is_output[index(life.data)] && block_sizes.is_movable(life.data);
  });
  for (Position p = 0; p < runs.size(); ++p) {
    const Task& task = graph[runs[p].task];
    is_forward_.push_back(task.phase == Phase::kForward && !runs[p].is_recomputation);
    if (is_forward_.back() && task.kind == TaskKind::kConvolution) forward_.push_back(p);
    if (is_backward[static_cast<std::size_t>(runs[p].task)]) backward_.push_back(p);
  }
}

TensorPool::Floor TensorPool::floor() const {
  std::vector<Swap> all;
  for (const IdleInterval& idle : find_idle_intervals(block_sizes_, tensors_)) {
    all.push_back({{idle, {}, block_sizes_.size(idle.data), idle.last + 1}, idle.next});
  }
  const std::vector<Bytes> near = near_during(all, demand_);
  const auto max = std::ranges::max_element(near);
  if (max == near.end()) return {};
  return {.position = static_cast<Position>(max - near.begin()), .size = *max};
}

std::vector<Swap> TensorPool::swaps(Bytes pool, TensorPolicy policy) const {
  auto far_intervals = cover(block_sizes_, demand_, tensors_, pool, {.whole_blocks = true});
  um::expects(far_intervals.has_value(), "a pool of at least the floor");
  if (policy == TensorPolicy::kEager) leave_eagerly(*far_intervals);
  std::ranges::stable_sort(*far_intervals, {}, &FarInterval::next);
  std::vector<Swap> swaps;
  for (const FarInterval& far_interval : *far_intervals) {
    swaps.push_back({far_interval, far_interval.next});
  }
  std::vector<Bytes> near = near_during(swaps, demand_);
  for (Swap& swap : swaps) {
    const Position wanted = fetch_position(swap);
    while (swap.back > wanted && near[swap.back - 1] + swap.size <= pool) {
      near[--swap.back] += swap.size;
    }
  }
  return swaps;
}

// Makes every tensor leave before the next convolution after its last forward use, needed or not.
void TensorPool::leave_eagerly(std::vector<FarInterval>& far_intervals) const {
  for (const IdleInterval& idle : find_idle_intervals(block_sizes_, tensors_)) {
    if (!is_forward_[idle.last] || is_forward_[idle.next]) continue;
    const auto convolution = std::ranges::upper_bound(forward_, idle.last);
    if (convolution == forward_.end() || *convolution >= idle.next) continue;
    const auto known = std::ranges::find_if(far_intervals, [&](const FarInterval& each) {
      return each.data == idle.data && each.last == idle.last;
    });
    if (known != far_intervals.end()) {
      known->needed = std::min(known->needed, *convolution);
    } else {
      far_intervals.push_back({idle, {}, block_sizes_.size(idle.data), *convolution});
    }
  }
}

Position TensorPool::fetch_position(const FarInterval& far_interval) const {
  const auto after = std::ranges::lower_bound(backward_, far_interval.next);
  if (after == backward_.begin() || *std::prev(after) < far_interval.needed)
    return far_interval.next;
  return *std::prev(after);
}

std::string superneurons_name(const SuperNeuronsOptions& options) {
  std::string name = "superneurons";
  char before = ':';
  for (const Switch& each : kSwitches) {
    if (options.*each.part) continue;
    name += before + std::string{each.name};
    before = ',';
  }
  return name;
}

SuperNeuronsOptions parse_superneurons_switches(std::string_view text) {
  SuperNeuronsOptions options;
  while (true) {
    const std::size_t comma = text.find(',');
    options.*find_switch(text.substr(0, comma)).part = false;
    if (comma == std::string_view::npos) return options;
    text.remove_prefix(comma + 1);
  }
}

std::variant<Plan, Infeasible> plan_superneurons(const Problem& problem,
                                                 const SuperNeuronsOptions& options) {
  const TaskGraph& graph = problem.graph;
  const BlockSizes block_sizes{graph, problem.page};
  std::vector<TaskRun> runs = runs_in_order(graph);
  if (options.recompute && problem.may_recompute) {
    const auto dropped = drop_cheap_layers(problem, runs, RecomputationStrategy::kCostAware);
    runs = RecomputationInserter{graph}.insert(runs, dropped);
  }
  const TensorPool tensors{graph, block_sizes, runs, options.offload};
  const TensorPool::Floor floor = tensors.floor();
  const Bytes smallest = block_sizes.pinned() + floor.size;
  if (smallest > problem.budget) {
    const TaskId max = runs.empty() ? TaskId{} : runs[floor.position].task;
    return Infeasible{.task = max, .smallest_budget = smallest};
  }
  std::vector<Swap> swaps =
      tensors.swaps(block_sizes.pool(problem.budget),
                    options.tensor_cache ? TensorPolicy::kCached : TensorPolicy::kEager);
  if (options.workspace) {
    const std::vector<Bytes> near = near_during(swaps, tensors.demand());
    choose_algorithms_beside(near, problem, block_sizes, runs);
  }
  Plan plan = empty_plan(problem, std::move(runs));
  add_moves(std::move(swaps), problem.profile.link, plan);
  return plan;
}

}  // namespace spillway::prefetch
