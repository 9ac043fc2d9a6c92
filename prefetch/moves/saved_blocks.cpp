#include "prefetch/moves/saved_blocks.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

namespace spillway::prefetch {
namespace {

// The gap of a block between the passes; nothing when only one of them uses it.
std::optional<SavedBlock> saved_block(const TaskGraph& graph, const BlockSizes& block_sizes,
                                      std::span<const TaskRun> runs, const Life& life) {
  const auto is_backward = [&](const BlockAccess& access) {
    return graph[runs[access.position].task].phase != Phase::kForward;
  };
  const auto next = std::ranges::find_if(life.accesses, is_backward);
  if (next == life.accesses.begin() || next == life.accesses.end()) return std::nullopt;
  const BlockAccess& last = *(next - 1);
  Position written = life.begin();
  for (auto access = life.accesses.begin(); access != next; ++access) {
    if (access->writes) written = access->position;
  }
  return SavedBlock{.gap = {.data = life.data,
                            .offset = {},
                            .size = block_sizes.size(life.data),
                            .written = written,
                            .last = last.position,
                            .next = next->position,
                            .needed = last.position + 1},
                    .is_input = last.reads && !last.writes};
}

}  // namespace

std::vector<SavedBlock> find_saved_blocks(const TaskGraph& graph, const BlockSizes& block_sizes,
                                          std::span<const TaskRun> runs) {
  std::vector<SavedBlock> saved;
  for (const Life& life : find_lives(graph, runs)) {
    if (!block_sizes.is_movable(life.data)) continue;
    if (const auto block = saved_block(graph, block_sizes, runs, life)) saved.push_back(*block);
  }
  std::ranges::stable_sort(saved, {}, [](const SavedBlock& block) {
    return std::pair{block.gap.last, block.gap.data};
  });
  return saved;
}

std::vector<Swap> away_until_used(std::span<const SavedBlock> saved) {
  std::vector<Swap> swaps;
  for (const SavedBlock& block : saved) {
    if (block.gap.next == block.gap.needed) continue;
    swaps.push_back({.far_interval = block.gap, .back = block.gap.next});
  }
  return swaps;
}

std::vector<BackwardLayer> find_backward_layers(const TaskGraph& graph,
                                                std::span<const TaskRun> runs,
                                                std::span<const SavedBlock> saved) {
  constexpr Position kNone = ~Position{0};
  std::vector<Position> layer_of(graph.data.size(), kNone);
  for (const SavedBlock& block : saved) {
    if (block.is_input) layer_of[static_cast<std::size_t>(block.gap.data)] = block.gap.last;
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
    if (layers.empty() || layers.back().layer != layer) {
      layers.push_back({.layer = layer, .begin = p, .end = p});
    }
    layers.back().end = p + 1;
  }
  return layers;
}

}  // namespace spillway::prefetch
