#include "prefetch/moves/saved_blocks.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace spillway::prefetch {

Position forward_end(const TaskGraph& graph) {
  const auto end = std::ranges::find_if(
      graph.tasks, [](const Task& task) { return task.phase != Phase::kForward; });
  return static_cast<Position>(end - graph.tasks.begin());
}

std::vector<IdleInterval> find_activations(const TaskGraph& graph, const BlockSizes& block_sizes,
                                           std::span<const Life> lives) {
  const Position end = forward_end(graph);
  std::vector<IdleInterval> saved;
  for (const Life& life : lives) {
    if (!block_sizes.is_movable(life.data) || life.begin() >= end || life.last() < end) continue;
    saved.push_back(idle_interval_at(life, end));
  }
  return saved;  // lives are in order of their beginning
}

std::vector<FarInterval> find_saved_blocks(const TaskGraph& graph, const BlockSizes& block_sizes,
                                           std::span<const TaskRun> runs) {
  const auto is_backward = [&](const BlockAccess& access) {
    return graph[runs[access.position].task].phase != Phase::kForward;
  };
  std::vector<FarInterval> saved;
  for (const Life& life : find_lives(graph, runs)) {
    const auto next = std::ranges::find_if(life.accesses, is_backward);
    if (!block_sizes.is_movable(life.data) || next == life.accesses.begin() ||
        next == life.accesses.end()) {
      continue;
    }
    const IdleInterval idle = idle_interval_at(life, next->position);
    saved.push_back({idle, {}, block_sizes.size(life.data), idle.last + 1});
  }
  std::ranges::stable_sort(saved, {}, [](const FarInterval& block) {
    return std::pair{block.last, block.data};
  });
  return saved;
}

std::vector<Swap> away_until_used(std::span<const FarInterval> saved) {
  std::vector<Swap> swaps;
  for (const FarInterval& block : saved) {
    if (block.next > block.needed) swaps.push_back({block, block.next});
  }
  return swaps;
}

std::vector<BackwardLayer> find_backward_layers(const TaskGraph& graph,
                                                std::span<const TaskRun> runs,
                                                std::span<const FarInterval> saved) {
  constexpr Position kNone = ~Position{0};
  std::vector<Position> layer_of(graph.data.size(), kNone);
  for (const FarInterval& block : saved) {
    if (block.follows_a_read()) layer_of[static_cast<std::size_t>(block.data)] = block.last;
  }
  std::vector<BackwardLayer> layers;
  Position layer = 0;
  for (Position p = 0; p < runs.size(); ++p) {
    const Task& task = graph[runs[p].task];
    if (task.phase == Phase::kForward) {
      layer = p + 1;
      continue;
    }
    for (const DataId id : task.reads) {
      layer = std::min(layer, layer_of[static_cast<std::size_t>(id)]);
    }
    if (layers.empty() || layers.back().end != p || layers.back().layer != layer) {
      layers.push_back({.layer = layer, .begin = p, .end = p});
    }
    layers.back().end = p + 1;
  }
  return layers;
}

}  // namespace spillway::prefetch
